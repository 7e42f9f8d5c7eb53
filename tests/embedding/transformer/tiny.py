"""Tiny random transformers, made on the spot: as objects and folders of both libraries."""

import json
from pathlib import Path

import numpy as np
import torch
import transformers
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

KINDS = ("bert", "distilbert", "roberta", "mpnet")
POOLINGS = ("mean", "cls", "max", "lasttoken")
WORDS = [
    "red", "blue", "green", "black", "car", "house", "tree", "river", "stone", "glass", "lamp",
    "door", "phone", "case", "cable", "engine", "wheel", "paper", "ink", "pen", "knife",
    "steel", "wood", "sand", "salt", "milk", "bread", "wine", "rose", "leaf", "bird", "fish",
    "wolf", "bear", "moon",
]  # fmt: skip
ENDINGS = ["##s", "##ing", "##er"]
#: Tokens of a text that the models take, and hidden units.
LONGEST, HIDDEN = 40, 24


def make_tokenizer(kind="bert"):
    """Return a tokenizer of word pieces; upper case is unknown to it."""
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    if kind in ("roberta", "mpnet"):  # where positions are counted from behind the filler's number
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
        tokenizer_object=made, unk_token="[UNK]", pad_token="[PAD]", cls_token="[CLS]",
        sep_token="[SEP]", model_max_length=LONGEST,
    )  # fmt: skip


def make_config(kind="bert", **parameters):
    """Return the settings of a model of two layers, which leaves out a tenth in training."""
    n_words = len(make_tokenizer(kind))
    own = {"vocab_size": n_words, "max_position_embeddings": LONGEST, "initializer_range": 0.2,
           "pad_token_id": 0}  # fmt: skip
    if kind == "distilbert":
        own |= {"dim": HIDDEN, "n_layers": 2, "n_heads": 2, "hidden_dim": 32}
    else:
        own |= {"hidden_size": HIDDEN, "num_hidden_layers": 2, "num_attention_heads": 2,
                "intermediate_size": 32}  # fmt: skip
    if kind in ("roberta", "mpnet"):
        own |= {"pad_token_id": 1, "max_position_embeddings": LONGEST + 2}
    return transformers.AutoConfig.for_model(kind, **{**own, **parameters})


def make_model(kind="bert", seed=0, **parameters):
    """Return a model whose weights, biases and scales are all anything."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = transformers.AutoModel.from_config(make_config(kind, **parameters))
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(0.1 * torch.randn_like(parameter))
    return model.eval()


def make_folder(folder, kind="bert", seed=0, **parameters):
    """Write a folder as transformers does; return its name."""
    make_model(kind, seed, **parameters).save_pretrained(folder)
    make_tokenizer(kind).save_pretrained(folder)
    return str(folder)


def make_sentences(
    folder, kind="bert", pooling="mean", dense=(), normalize=True, lower_case=False, **parameters
):
    """Return a SentenceTransformer, whose transformer is written to a folder first.

    `dense` has the width and the activation of each dense layer.
    """
    import sentence_transformers

    try:
        from sentence_transformers.base.modules import Dense, Transformer
        from sentence_transformers.sentence_transformer.modules import Normalize, Pooling
    except ImportError:  # before version 6
        from sentence_transformers.models import Dense, Normalize, Pooling, Transformer

    base = Transformer(make_folder(folder, kind, **parameters), do_lower_case=lower_case)
    layers, width = [base, Pooling(HIDDEN, pooling)], HIDDEN
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        for n_units, activation in dense:
            layers.append(Dense(width, n_units, activation_function=activation))
            width = n_units
    layers += [Normalize()] * normalize
    return sentence_transformers.SentenceTransformer(modules=layers, device="cpu")


def make_old(folder, *, pooling="mean", longest=None, lower_case=False):
    """Rewrite a folder of sentence-transformers as its older versions wrote them."""
    folder = Path(folder)
    names = {"cls": "cls_token", "max": "max_tokens", "mean": "mean_tokens"}
    modes = {f"pooling_mode_{name}": kind == pooling for kind, name in names.items()}
    modes["pooling_mode_mean_sqrt_len_tokens"] = pooling == "mean_sqrt_len_tokens"
    write(folder / "1_Pooling" / "config.json", {"word_embedding_dimension": HIDDEN, **modes})
    write(folder / "sentence_bert_config.json",
          {"max_seq_length": longest, "do_lower_case": lower_case})  # fmt: skip
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


def of_length(n_tokens, seed=0):
    """Return a text of so many tokens, with those at its ends."""
    words = np.random.default_rng(seed).choice(WORDS, n_tokens - 2)
    return " ".join(words)


def vectors(model, tokenizer, texts, *, pooling="mean", max_length=32, layers=(), unit=True):
    """Return vectors as a tensor with gradients, by plain use of a model of transformers.

    `layers` are torch modules behind the pooling.
    """
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
    for layer in layers:
        out = layer(out)
    return out / out.norm(dim=1, keepdim=True) if unit else out
