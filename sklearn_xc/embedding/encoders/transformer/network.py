"""A transformer with pooling and a projection: arrays, computed by PyTorch."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from sklearn_xc._state.checkpoints import restore
from sklearn_xc._state.schema import Choice, Number, Record, Tested, declares
from sklearn_xc._weights.tensors import Tensors
from sklearn_xc.embedding.encoders.transformer.libraries import library, torch
from sklearn_xc.exceptions import SavedModelError

#: How the vectors of tokens become one: their mean, that of the first token, the largest of each
#: coordinate, or that of the last token.
POOLINGS = ("mean", "cls", "max", "lasttoken")
#: A layer of some models that vectors do not depend on.
POOLER = "pooler"
#: Of AdamW. Source: I. Loshchilov and F. Hutter, "Decoupled weight decay regularization", 2019.
_BETAS = (0.9, 0.999)
_EPSILON = 1e-8
#: AdamW's means of gradients and of their squares, as torch names them.
_MOMENTS = ("exp_avg", "exp_avg_sq")
#: Copies of each vector that go through the projection. BLAS rounds the product of a row by its
#: neighbours; among copies of itself it rounds alike.
_COPIES = 8
#: Settings that are not read from a file: the outputs, and whose code computes them.
_OWN = {
    "return_dict": True,
    "output_attentions": False,
    "output_hidden_states": False,
    "use_cache": False,
}
_NOT_TAKEN = ("attn_implementation", "experts_implementation", "quantization_config", "auto_map")

_building = threading.Lock()
#: The generator of this thread's dropout, if any.
_drops = threading.local()


def _is_json(text: Any, require: Any) -> bool:
    try:
        return isinstance(text, str) and isinstance(json.loads(text), dict)
    except ValueError:
        return False


@declares(
    config=Tested("the JSON of a transformer's settings", _is_json),
    tokenizer=Tested("the JSON of a tokenizer", _is_json),
    pooling=Choice(*POOLINGS),
    max_length=Number("int", least=1),
    lower_case=Number("bool"),
    dim=Number("int", least=1),
    weights=Record("Tensors"),
)
class Network:
    """Layers from tokens to unit vectors, and AdamW.

    Parameters
    ----------
    config, tokenizer : str
        The settings of the transformer, and its tokenizer, as JSON.
    pooling : str
        One of `POOLINGS`.
    max_length : int
        Maximum number of tokens.
    lower_case : bool
        Whether texts are lower-cased before the tokenizer.
    weights : dict of str to ndarray of float32
        "transformer.NAME".

    Attributes
    ----------
    dim : int
        Length of the vectors.
    n_steps : int
        Steps that AdamW has taken.
    """

    def __init__(
        self,
        config: str,
        tokenizer: str,
        pooling: str,
        max_length: int,
        lower_case: bool,
        weights: dict[str, np.ndarray],
    ) -> None:
        self.config, self.tokenizer, self.pooling = config, tokenizer, pooling
        self.max_length, self.lower_case = max_length, lower_case
        self.dim = int(json.loads(config)["hidden_size"])
        self.weights: Tensors | None = Tensors(weights)
        self._reset()

    def _reset(self) -> None:
        self.n_steps, self._module, self._optimiser = 0, None, None
        self._fast_tokenizer: Any = None

    def with_projection(self, projection: np.ndarray) -> "Network":
        """Return a network of the same layers and a linear one, (dim, own_dim), that learns."""
        other = object.__new__(Network)
        other.__setstate__(self.__getstate__())
        other.dim = len(projection)
        weights = self.tensors().arrays | {"projection.weight": projection}
        other.weights = Tensors(weights)
        return other

    @property
    def settings(self) -> dict[str, Any]:
        """What vectors depend on besides the weights."""
        names = ("config", "tokenizer", "pooling", "max_length", "lower_case")
        return {name: getattr(self, name) for name in names}

    @property
    def filler(self) -> int:
        """The padding token."""
        return int(json.loads(self.config).get("pad_token_id") or 0)

    @property
    def token_bytes(self) -> int:
        """About how many bytes a token takes in a pass that is kept for its gradient.

        MiniLM took 270 kB in float32.
        """
        settings = json.loads(self.config)
        n_layers = settings.get("num_hidden_layers", settings.get("n_layers", 12))
        return int(n_layers * settings.get("hidden_size", settings.get("dim", 768)) * 30 * 4)

    def tokens(self, texts: Any, max_length: int) -> list[np.ndarray]:
        """Return the tokens of each text, at least one and at most `max_length`."""
        if self._fast_tokenizer is None:
            made = library("tokenizers").Tokenizer.from_str(self.tokenizer)
            made.no_padding()
            self._fast_tokenizer = made
        self._fast_tokenizer.enable_truncation(max_length)
        if self.lower_case:
            texts = [text.lower() for text in texts]
        # Halves of surrogate pairs are no characters, and would be refused.
        texts = [text.encode("utf-8", "replace").decode() for text in texts]
        made = self._fast_tokenizer.encode_batch_fast(texts)
        return [np.array(encoding.ids or [0], np.int64) for encoding in made]

    def module(self, device: Any) -> Any:
        """Return the layers as a torch module on a device, where they stay."""
        with _building:
            if self._module is None:
                self._module = self._built()
                self.weights = None  # the module has them
            if next(self._module.parameters()).device != torch().device(device):
                self._module.to(device)
            return self._module

    def _built(self) -> Any:
        assert self.weights is not None
        nn = torch().nn
        weights = self.weights.arrays
        transformers = library("transformers")
        held = json.loads(self.config)
        config = {key: held[key] for key in held if key[:1] != "_" and key not in _NOT_TAKEN} | _OWN
        with torch().random.fork_rng(devices=[]):
            kind = transformers.AutoConfig.for_model(config.pop("model_type"), **config)
            model = transformers.AutoModel.from_config(
                kind, dtype=torch().float32, trust_remote_code=False
            )
            if getattr(model, POOLER, None) is not None:
                setattr(model, POOLER, nn.Identity())
            layers = {"transformer": model}
            if "projection.weight" in weights:
                shape = weights["projection.weight"].shape
                layers["projection"] = nn.Linear(shape[1], shape[0], bias=False)
        module = nn.ModuleDict(layers)
        found = {name: torch().from_numpy(np.array(array)) for name, array in weights.items()}
        try:
            module.load_state_dict(found)
        except RuntimeError as error:
            raise SavedModelError(f"TransformerEncoder: weights do not fit: {error}") from error
        module.eval()
        for part in module.modules():
            if isinstance(part, nn.Dropout):
                part.register_forward_hook(_leave_out)
        return module

    def parameters(self) -> dict[str, Any]:
        """Return the tensors that learn, by name; vectors do not depend on all of some models."""
        return dict(self._module.named_parameters())

    def step(self, gradients: dict[str, Any], rate: float, weight_decay: float) -> None:
        """Take a step of AdamW; matrices decay, biases and scales do not.

        Tensors without a gradient stay.
        """
        if self._optimiser is None:
            self._optimiser = self._new_optimiser()
        for name, parameter in self.parameters().items():
            parameter.grad = gradients.get(name)
        for group in self._optimiser.param_groups:
            group["lr"] = rate
            group["weight_decay"] = weight_decay if group["decays"] else 0.0
        self._optimiser.step()
        self._optimiser.zero_grad(set_to_none=True)
        self.n_steps += 1

    def _new_optimiser(self) -> Any:
        every = list(self.parameters().values())
        groups = [
            {"params": [p for p in every if (p.ndim > 1) == decays], "decays": decays}
            for decays in (True, False)
        ]
        groups = [group for group in groups if group["params"]]
        return torch().optim.AdamW(groups, lr=0.0, betas=_BETAS, eps=_EPSILON)

    def forget_steps(self) -> None:
        """Drop the state of AdamW."""
        self._optimiser, self.n_steps = None, 0

    def tensors(self) -> Tensors:
        """Return the current weights; on a CPU they share the memory of the layers."""
        weights = self.weights  # another thread may be building the module
        if weights is not None:
            return weights
        state = self._module.state_dict().items()
        return Tensors({name: value.detach().cpu().numpy() for name, value in state})

    def kept(self) -> dict[str, np.ndarray]:
        """Return the arrays of a checkpoint: the weights, and the state of AdamW."""
        state = self._optimiser.state
        weights = self.tensors().arrays
        return {"n_steps": np.array(self.n_steps)} | {
            **{f"weights/{name}": array for name, array in weights.items()},
            **{
                f"{moment}/{name}": state[parameter][moment].cpu().numpy()
                for moment in _MOMENTS
                for name, parameter in self.parameters().items()
                if parameter in state
            },
        }

    def resume(self, found: dict[str, np.ndarray], device: Any) -> None:
        """Continue from a checkpoint; SavedModelError if it does not fit the layers."""
        self.module(device)
        learnt = {
            name: one for name, one in self.parameters().items() if f"{_MOMENTS[0]}/{name}" in found
        }
        arrays = {f"weights/{name}": np.array(one) for name, one in self.tensors().arrays.items()}
        for moment in _MOMENTS:
            arrays |= {
                f"{moment}/{name}": np.array(one.detach().cpu().numpy())
                for name, one in learnt.items()
            }
        restore(arrays | {"n_steps": (n_steps := np.array(0))}, found)
        tensors = {name: torch().from_numpy(array) for name, array in arrays.items()}
        held = {name: tensors[f"weights/{name}"] for name in self.tensors().arrays}
        self._module.load_state_dict(held)
        self.n_steps, self._optimiser = int(n_steps), self._new_optimiser()
        for name, parameter in learnt.items():
            moments = {key: tensors[f"{key}/{name}"].to(parameter.device) for key in _MOMENTS}
            step = torch().tensor(float(self.n_steps))
            self._optimiser.state[parameter] = {"step": step, **moments}

    def __getstate__(self) -> dict[str, Any]:
        state = {name: one for name, one in vars(self).items() if name[0] != "_"}
        del state["n_steps"]
        return state | {"weights": self.tensors()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._reset()


def unit_vectors(network: Network, device: Any, ids: Any, mask: Any, precision: str) -> Any:
    """Return the vectors of texts as a tensor of float32 of shape (n, dim), of norm 1.

    Parameters
    ----------
    network : Network
    device : torch.device
    ids, mask : ndarray of int64 of shape (n, length)
        As of `Chunk`.
    precision : {"float32", "bfloat16"}
        Of the products of the layers.
    """
    module = network.module(device)
    n = len(ids)
    if n == 1:  # attention of one text alone would be rounded otherwise
        ids, mask = (np.repeat(array, 2, axis=0) for array in (ids, mask))
    ids, mask = (torch().from_numpy(array).to(device) for array in (ids, mask))
    with torch().autocast(ids.device.type, torch().bfloat16, enabled=precision == "bfloat16"):
        held = module["transformer"](input_ids=ids, attention_mask=mask).last_hidden_state
    vectors = _pooled(held.float(), mask, network.pooling)[:n]
    if "projection" in module:
        vectors = vectors[:, None].expand(-1, _COPIES, -1).reshape(n * _COPIES, -1)
        vectors = module["projection"](vectors)[::_COPIES]
    return torch().nn.functional.normalize(vectors, dim=1)


def _pooled(held: Any, mask: Any, pooling: str) -> Any:
    if pooling == "cls":
        return held[:, 0]
    if pooling == "lasttoken":
        return held[torch().arange(len(held), device=held.device), mask.sum(dim=1) - 1]
    there = mask[:, :, None]
    if pooling == "max":
        return held.masked_fill(there == 0, -torch().inf).amax(dim=1)
    return (held * there).sum(dim=1) / there.sum(dim=1)


def _leave_out(layer: Any, given: Any, output: Any) -> Any:
    """Drop units by the generator of this thread, if any: a hook of torch's Dropout.

    That one draws from a generator that threads would share.
    """
    generator = getattr(_drops, "generator", None)
    if generator is None or layer.p == 0:
        return output
    stays = torch().empty_like(output).bernoulli_(1.0 - layer.p, generator=generator)
    return output * stays / (1.0 - layer.p)


@contextmanager
def dropping(seed: int, device: Any) -> Iterator[None]:
    """Return a context in which this thread drops units at random."""
    _drops.generator = torch().Generator(device).manual_seed(seed)
    try:
        yield
    finally:
        _drops.generator = None
