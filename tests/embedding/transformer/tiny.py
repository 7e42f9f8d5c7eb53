"""Tiny random transformers, made on the spot: as models and as folders of both libraries."""

import json
from pathlib import Path

import numpy as np
import torch
import transformers
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

KINDS = ("bert", "distilbert", "roberta", "mpnet")
_TEXT = """
red blue green black car house tree river stone glass lamp door phone case cable engine wheel paper
ink pen knife steel wood sand salt milk bread wine rose leaf bird fish wolf bear moon
"""
WORDS = _TEXT.split()
ENDINGS = ["##s", "##ing", "##er"]
#: Maximum number of tokens, and hidden units.
LONGEST, HIDDEN = 40, 24


def make_tokenizer(kind="bert"):
    """Return a tokenizer of word pieces; upper case is unknown to it."""
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    if kind in ("roberta", "mpnet"):  # positions are counted from the padding token's number
        special = ["[CLS]", "[PAD]", "[SEP]", "[UNK]"]
    numbers = {token: i for i, token in enumerate([*special, *WORDS, *ENDINGS])}
    made = Tokenizer(models.WordPiece(numbers, unk_token="[UNK]"))
    made.normalizer = normalizers.BertNormalizer(lowercase=False)
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    ends = [(token, numbers[token]) for token in ("[CLS]", "[SEP]")]
    made.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B [SEP]", special_tokens=ends
    )
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=made,
        unk_token="[UNK]",
        pad_token="[PAD]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        model_max_length=LONGEST,
    )


def make_config(kind="bert", dropout=0.1, **parameters):
    """Return the settings of a model of two layers."""
    own = {
        "vocab_size": len(make_tokenizer(kind)),
        "max_position_embeddings": LONGEST,
        "initializer_range": 0.2,
        "pad_token_id": 0,
    }
    if kind == "distilbert":
        own |= {"dim": HIDDEN, "n_layers": 2, "n_heads": 2, "hidden_dim": 32, "dropout": dropout}
    else:
        own |= {"hidden_size": HIDDEN, "num_hidden_layers": 2, "num_attention_heads": 2}
        own |= {"intermediate_size": 32, "hidden_dropout_prob": dropout}
        own["attention_probs_dropout_prob"] = dropout
    if kind in ("roberta", "mpnet"):
        own |= {"pad_token_id": 1, "max_position_embeddings": LONGEST + 2}
    return transformers.AutoConfig.for_model(kind, **{**own, **parameters})


def make_model(kind="bert", seed=0, **parameters):
    """Return a model with random weights, biases and scales."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = transformers.AutoModel.from_config(make_config(kind, **parameters))
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(0.1 * torch.randn_like(parameter))
    return model.eval()


def make_folder(folder, kind="bert", model=None, **parameters):
    """Write a folder as transformers does; return its name."""
    (make_model(kind, **parameters) if model is None else model).save_pretrained(folder)
    make_tokenizer(kind).save_pretrained(folder)
    return str(folder)


def make_sentences(folder, kind="bert", pooling="mean", normalize=True, lower_case=False):
    """Return a SentenceTransformer; its transformer is written to a folder first."""
    import sentence_transformers

    try:
        from sentence_transformers.base.modules import Transformer
        from sentence_transformers.sentence_transformer.modules import Normalize, Pooling
    except ImportError:  # before version 6
        from sentence_transformers.models import Normalize, Pooling, Transformer

    base = Transformer(make_folder(folder, kind), do_lower_case=lower_case)
    layers = [base, Pooling(HIDDEN, pooling), *[Normalize()] * normalize]
    return sentence_transformers.SentenceTransformer(modules=layers, device="cpu")


def make_old(folder, *, pooling="mean", longest=None, lower_case=False):
    """Rewrite a folder of sentence-transformers as its older versions wrote them."""
    folder = Path(folder)
    names = {"cls": "cls_token", "max": "max_tokens", "mean": "mean_tokens"}
    modes = {f"pooling_mode_{name}": kind == pooling for kind, name in names.items()}
    modes["pooling_mode_mean_sqrt_len_tokens"] = pooling == "mean_sqrt_len_tokens"
    write(folder / "1_Pooling" / "config.json", {"word_embedding_dimension": HIDDEN, **modes})
    write(
        folder / "sentence_bert_config.json",
        {"max_seq_length": longest, "do_lower_case": lower_case},
    )
    modules = json.loads((folder / "modules.json").read_text())
    for module in modules:
        module["type"] = "sentence_transformers.models." + module["type"].rpartition(".")[2]
    write(folder / "modules.json", modules)


def write(path, content):
    """Write JSON."""
    path.write_text(json.dumps(content))


def make_texts(n=60, seed=0, longest=50):
    """Return texts of 1 to `longest` words, an array of str objects; some come twice."""
    rng = np.random.default_rng(seed)
    texts = []
    for _ in range(n):
        words = rng.choice(WORDS, rng.integers(1, longest + 1))
        ends = rng.choice(["", "", "s", "ing", "xyz"], len(words))
        texts.append(" ".join(word + end for word, end in zip(words, ends, strict=True)))
    texts[n // 2] = texts[0]
    return np.array(texts, object)


def vectors(model, tokenizer, texts, *, pooling="mean", max_length=32, projection=None):
    """Return vectors as a tensor with gradients, by plain use of a model of transformers."""
    read = tokenizer(
        list(texts), padding=True, truncation=True, max_length=max_length, return_tensors="pt"
    )
    ids, mask = read["input_ids"], read["attention_mask"]
    held = model(input_ids=ids, attention_mask=mask).last_hidden_state
    rows = []
    for i in range(len(texts)):
        tokens = held[i, : int(mask[i].sum())]
        if pooling == "mean":
            rows.append(tokens.mean(dim=0))
        elif pooling == "max":
            rows.append(tokens.max(dim=0).values)
        else:
            rows.append(tokens[0 if pooling == "cls" else -1])
    out = torch.stack(rows)
    out = out if projection is None else projection(out)
    return out / out.norm(dim=1, keepdim=True)
