"""The contract's matrices as texts, and a tiny transformer that reads them.

A feature and about how large its value is are a word that the transformer knows, so that it can
learn what the contract's data have to tell.
"""

import getpass
import hashlib
import importlib.util
import os
import shutil
import tempfile
from pathlib import Path
from zlib import crc32

import numpy as np

from sklearn_xc import NGAMEEmbeddingXC, embedding
from sklearn_xc._input.checks import check_instances
from sklearn_xc._state import values
from sklearn_xc._state.schema import Array, Number, declares
from sklearn_xc.base import XCClassifier
from sklearn_xc.embedding._inputs import DTYPE, TextRows, label_rows, rows_in_range
from sklearn_xc.embedding.encoders import TransformerEncoder

#: Features of which the transformer knows a word; those behind them have the words of these.
_N_FEATURES = 64
#: Values between two of these have one word, whose last letter says which.
_BOUNDS, _LETTERS = np.array([-1.0, -0.3, 0.0, 0.3, 1.0]), "abcdef"
HAS_TRANSFORMERS = all(
    importlib.util.find_spec(name) is not None for name in ("torch", "transformers")
)


# Without "features" for their lengths, which here are those of what the vectorizer makes.
@declares(n_features_in_=Number("int"), feature_names_in_=Array("any", None, optional="missing"))
class RowsAsTexts(NGAMEEmbeddingXC):
    """NGAMEEmbeddingXC of an encoder of texts, which takes matrices: each row becomes a text.

    They are checked as matrices, and rows of label features are. Where none are given, a label has
    the word of a feature for a text, and none if it has no instance: nothing is known of it then.

    Parameters
    ----------
    As of ``NGAMEEmbeddingXC``.
    """

    _has_given_features = False  # the matrix is all in the texts

    def _instances(self, X, *, reset=False):
        rows = check_instances(self, X, reset=reset)
        name = f"{type(self).__name__}: X"
        return TextRows.of(texts_of(rows_in_range(rows, name)))

    def _label_rows(self, given, n_labels, dtype, n_features):
        rows = label_rows(given, n_labels, self.n_features_in_, np.float64, type(self).__name__)
        if rows is None:
            return None
        return self._with_features(TextRows.of(texts_of(rows)), n_features)

    def _label_rows_of_fit(self, label_features, examples):
        Z = super()._label_rows_of_fit(label_features, examples)
        if Z is None:
            texts = np.full(len(self.classes_), "", object)
            for label in np.unique(examples.positives.labels):
                texts[label] = _word(label, 1.0)
            features = examples.X.features
            n_features = None if features is None else features.shape[1]
            Z = self._with_features(TextRows.of(texts), n_features)
        return Z

    def __sklearn_tags__(self):
        return XCClassifier.__sklearn_tags__(self)  # those of who takes matrices


# Files and pickles name public classes of the package alone: ``make_public`` has this be one.
RowsAsTexts.__module__ = embedding.__name__


def make_public(patch):
    """Have the class be where files and pickles of its models say, until `patch` undoes it."""
    name = RowsAsTexts.__name__
    patch.setattr(embedding, name, RowsAsTexts, raising=False)
    patch.setattr(embedding, "__all__", [*embedding.__all__, name])
    patch.setitem(values.MODULES, name, embedding.__name__)


def texts_of(rows):
    """Return a text for each row, an array of str objects; an empty one of a row without features.

    Parameters
    ----------
    rows : CsrRows of shape (n, n_features)
        Without zeros. Values are told apart as float32, in which vectorizers make features.

    Returns
    -------
    ndarray of str objects of shape (n,)
        A word for each feature, and one for all of them and their values, which no vectorizer
        takes for a word and the transformer does not know. Equal rows have equal texts, others
        different ones.
    """
    texts = np.full(rows.shape[0], "", object)
    entries = rows.data.astype(DTYPE)
    for i in np.flatnonzero(np.diff(rows.indptr)):
        part = slice(rows.indptr[i], rows.indptr[i + 1])
        features, own = rows.indices[part].astype(np.int64), entries[part]
        digest = crc32(own.tobytes(), crc32(features.tobytes()))
        texts[i] = " ".join([*map(_word, features, own), "-".join(f"{digest:08x}")])
    return texts


def _word(feature, value):
    return f"w{feature % _N_FEATURES}{_LETTERS[np.searchsorted(_BOUNDS, value)]}"


def tiny_bert():
    """Return the name of the folder of a tiny random BERT, which is the same in all processes."""
    made_by = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()[:16]
    return str(Path(tempfile.gettempdir(), f"sklearn_xc-bert-{getpass.getuser()}-{made_by}"))


def write_tiny_bert():
    """Write the folder of ``tiny_bert`` if it is not there."""
    folder = tiny_bert()
    if os.path.isdir(folder):
        return
    import tokenizers
    import transformers
    from tokenizers import models, pre_tokenizers

    from sklearn_xc.embedding.encoders.transformer.libraries import quiet

    words = [f"w{i}{letter}" for i in range(_N_FEATURES) for letter in _LETTERS]
    numbers = {word: i for i, word in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", *words])}
    tokenizer = tokenizers.Tokenizer(models.WordLevel(numbers, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    config = transformers.BertConfig(
        vocab_size=len(numbers),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=32,
        pad_token_id=0,
    )
    model, rng = transformers.BertModel(config, add_pooling_layer=False), np.random.default_rng(0)
    for name, parameter in model.named_parameters():
        # Texts with other words have other vectors: words say most.
        drawn = rng.normal(scale=1.0 if "word" in name else 0.1, size=parameter.shape)
        parameter.data.numpy()[...] = drawn + (name.endswith("LayerNorm.weight"))
    place = tempfile.mkdtemp(prefix="sklearn_xc-bert-")
    with quiet():
        model.save_pretrained(place)
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        unk_token="[UNK]",
        pad_token="[PAD]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        model_max_length=32,
    ).save_pretrained(place)
    try:
        os.rename(place, folder)
    except OSError:  # another process was faster
        shutil.rmtree(place)


def transformer(**parameters):
    """Return an encoder by the tiny BERT."""
    return TransformerEncoder(tiny_bert(), max_length=16, **parameters)
