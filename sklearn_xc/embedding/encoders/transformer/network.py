"""A transformer with pooling, dense layers and projection: arrays, computed by PyTorch."""

import json
import threading
from typing import Any

import numpy as np

from sklearn_xc._state.loops import restore
from sklearn_xc._state.schema import Choice, Number, Place, Record, Tested, declares
from sklearn_xc._weights.tensors import Tensors
from sklearn_xc.embedding.encoders.transformer.libraries import torch, transformers
from sklearn_xc.embedding.encoders.transformer.pretrained import (
    ACTIVATIONS,
    BESIDE,
    POOLINGS,
    Pretrained,
)

#: Of AdamW. Source: I. Loshchilov and F. Hutter, "Decoupled weight decay regularization", 2019.
_BETAS, _EPSILON = (0.9, 0.999), 1e-8

#: Copies of each vector that go through dense layers. BLAS rounds the product of a row by its
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

#: Attributes that training changes, beside `n_steps`: arrays by name.
_LEARNT = ("weights", "first", "second")

_building = threading.Lock()
#: The generator of this thread's dropout, if any.
_drops = threading.local()


def _is_json(text: Any, require: Any) -> bool:
    try:
        return isinstance(text, str) and isinstance(json.loads(text), dict)
    except ValueError:
        return False


def _are_activations(names: Any, require: Any) -> bool:
    return isinstance(names, tuple | list) and all(name in ACTIVATIONS for name in names)


def _is_layout(layout: Any, require: Any) -> bool:
    return isinstance(layout, dict) and all(isinstance(name, str) for name in layout)


class _Weights(Record):
    """Arrays that are as `layout` says."""

    def check(self, value: Any, place: Place) -> None:
        """See `Attribute`."""
        super().check(value, place)
        layout, found = place.owner.layout, _layout_of(value)
        for name in sorted({*layout, *found}):
            if found.get(name) != layout.get(name):
                misplaced = place.within(name)
                raise misplaced.misfit(str(layout.get(name, "missing")), found.get(name))


def _layout_of(weights: Tensors) -> dict[str, list[Any]]:
    """Return the dtype and the shape of each array, as JSON has them."""
    return {name: [array.dtype.name, *array.shape] for name, array in weights.arrays.items()}


def token_bytes(config: str) -> int:
    """Return about how many bytes a token takes in a pass that is kept for its gradient.

    Parameters
    ----------
    config : str
        Of the transformer, as JSON. MiniLM took 270 kB in float32.
    """
    settings = json.loads(config)
    n_layers = settings.get("num_hidden_layers", settings.get("n_layers", 12))
    width = settings.get("hidden_size", settings.get("dim", 768))
    return int(n_layers * width * 30 * 4)


@declares(
    config=Tested("the JSON of a transformer's settings", _is_json),
    tokenizer=Tested("the JSON of a tokenizer", _is_json),
    pooling=Choice(*POOLINGS),
    max_length=Number("int", least=1),
    lower_case=Number("bool"),
    _dim=Number("int", least=1),
    activations=Tested(f"names among {ACTIVATIONS}", _are_activations),
    layout=Tested("what each array is to be", _is_layout),
    weights=_Weights("Tensors"),
    first=Record("Tensors", optional=True),
    second=Record("Tensors", optional=True),
    n_steps=Number("int", least=0),
)
class Network:
    """Layers from tokens to unit vectors, and the state of AdamW.

    Parameters
    ----------
    pretrained : Pretrained
    projection : ndarray of float32 of shape (dim, own_dim) or None
        The last layer.

    Attributes
    ----------
    config, tokenizer, pooling, max_length, lower_case, activations
        As of `Pretrained`.
    layout : dict of str to list
        Dtype and lengths of each of the weights: those in a file must be so.
    weights : Tensors
        Of all layers, as they are now.
    first, second : Tensors or None
        Means of gradients and of their squares, after steps.
    n_steps : int
        That AdamW has taken.
    """

    def __init__(self, pretrained: Pretrained, projection: np.ndarray | None = None) -> None:
        self.config, self.tokenizer = pretrained.config, pretrained.tokenizer
        self.pooling, self.activations = pretrained.pooling, pretrained.activations
        self.max_length, self.lower_case = pretrained.max_length, pretrained.lower_case
        self._dim = pretrained.dim if projection is None else len(projection)
        weights = dict(pretrained.weights)
        if projection is not None:
            weights["projection.weight"] = projection
        self.weights: Tensors | None = Tensors(weights)
        self.layout = _layout_of(self.weights)
        self.first: Tensors | None = None
        self.second: Tensors | None = None
        self.n_steps = 0
        self._module: Any = None
        self._optimiser: Any = None
        self._learning: tuple[str, ...] = ()

    @property
    def filler(self) -> int:
        """The padding token."""
        return int(json.loads(self.config).get("pad_token_id") or 0)

    @property
    def dim(self) -> int:
        """Length of the vectors."""
        return self._dim

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
        nn, weights = torch().nn, self.weights.arrays
        held = json.loads(self.config)
        config = {key: held[key] for key in held if key[:1] != "_" and key not in _NOT_TAKEN} | _OWN
        with torch().random.fork_rng(devices=[]):
            kind = transformers().AutoConfig.for_model(config.pop("model_type"), **config)
            model = transformers().AutoModel.from_config(
                kind, dtype=torch().float32, trust_remote_code=False
            )
            if getattr(model, BESIDE, None) is not None:
                setattr(model, BESIDE, nn.Identity())
            layers = {"transformer": model}
            for i, name in enumerate(self.activations):
                shape = weights[f"dense.{i}.weight"].shape
                has_bias = f"dense.{i}.bias" in weights
                layers[f"dense-{i}"] = nn.Linear(shape[1], shape[0], bias=has_bias)
                layers[f"activation-{i}"] = getattr(nn, name)()
            if "projection.weight" in weights:
                shape = weights["projection.weight"].shape
                layers["projection"] = nn.Linear(shape[1], shape[0], bias=False)
        module = nn.ModuleDict(layers)
        found = {
            _torch_name(name): torch().from_numpy(np.array(array))
            for name, array in weights.items()
        }
        module.load_state_dict(found)
        module.eval()
        for part in module.modules():
            if isinstance(part, nn.Dropout):
                part.register_forward_hook(_leave_out)
        return module

    def parameters(self) -> dict[str, Any]:
        """Return the tensors that vectors depend on, by name; a transformer may have others."""
        every = dict(self._module.named_parameters())
        if not self._learning:
            device = next(iter(every.values())).device
            ids = torch().full((1, 8), self.filler, device=device)
            with torch().enable_grad():
                vectors = unit_vectors(self._module, self, ids, torch().ones_like(ids), "float32")
                found = torch().autograd.grad(
                    vectors, list(every.values()), torch().ones_like(vectors), allow_unused=True
                )
            self._learning = tuple(
                name for name, one in zip(every, found, strict=True) if one is not None
            )
        return {name: every[name] for name in self._learning}

    def step(self, gradients: dict[str, Any], rate: float, weight_decay: float) -> None:
        """Take a step of AdamW; matrices decay, biases and scales do not."""
        parameters = self.parameters()
        if self._optimiser is None:
            self._optimiser = self._new_optimiser(parameters)
        for name, parameter in parameters.items():
            parameter.grad = gradients.get(name)
        for group in self._optimiser.param_groups:
            group["lr"] = rate
            group["weight_decay"] = weight_decay if group["decays"] else 0.0
        self._optimiser.step()
        self._optimiser.zero_grad(set_to_none=True)
        self.n_steps += 1

    def _new_optimiser(self, parameters: dict[str, Any]) -> Any:
        groups = [
            {"params": [p for p in parameters.values() if (p.ndim > 1) == decays], "decays": decays}
            for decays in (True, False)
        ]
        groups = [group for group in groups if group["params"]]
        optimiser = torch().optim.AdamW(groups, lr=0.0, betas=_BETAS, eps=_EPSILON)
        if self.first is not None and self.second is not None:
            for name, parameter in parameters.items():
                optimiser.state[parameter] = {
                    "step": torch().tensor(float(self.n_steps)),
                    "exp_avg": self._moment(self.first, name, parameter),
                    "exp_avg_sq": self._moment(self.second, name, parameter),
                }
            self.first = self.second = None  # the optimiser has them
        return optimiser

    @staticmethod
    def _moment(held: Tensors, name: str, parameter: Any) -> Any:
        return torch().from_numpy(np.array(held.arrays[name])).to(parameter.device)

    def forget_steps(self) -> None:
        """Drop the state of AdamW."""
        self._optimiser = self.first = self.second = None
        self.n_steps = 0

    def tensors(self) -> Tensors:
        """Return the current weights; on a CPU they share the memory of the layers."""
        weights = self.weights  # another thread may be building the module
        if weights is not None:
            return weights
        return Tensors(
            {
                _our_name(name): value.detach().cpu().numpy()
                for name, value in self._module.state_dict().items()
            }
        )

    def kept(self) -> dict[str, np.ndarray]:
        """Return the arrays of a checkpoint: the weights, and the state of AdamW."""
        state = self.__getstate__()
        return {"n_steps": np.array(self.n_steps)} | {
            f"{part}/{name}": array
            for part in _LEARNT
            if state[part] is not None
            for name, array in state[part].arrays.items()
        }

    def resume(self, found: dict[str, np.ndarray], device: Any) -> None:
        """Continue from a checkpoint; SavedModelError if it does not fit the layers."""
        self.module(device)
        parameters = {name: one.detach().cpu().numpy() for name, one in self.parameters().items()}
        held = dict(zip(_LEARNT, (self.tensors().arrays, parameters, parameters), strict=True))
        arrays = {
            part: {name: np.empty_like(array) for name, array in of.items()}
            for part, of in held.items()
        }
        n_steps = np.array(0)
        restore(
            {"n_steps": n_steps}
            | {f"{part}/{name}": one for part, of in arrays.items() for name, one in of.items()},
            found,
        )
        state = {part: Tensors(of) for part, of in arrays.items()}
        self.__setstate__(self.__getstate__() | state | {"n_steps": int(n_steps)})

    def __getstate__(self) -> dict[str, Any]:
        state = {**vars(self), "weights": self.tensors()}
        if self._optimiser is not None:
            for name, key in (("first", "exp_avg"), ("second", "exp_avg_sq")):
                state[name] = Tensors(
                    {
                        of: self._optimiser.state[parameter][key].cpu().numpy()
                        for of, parameter in self.parameters().items()
                    }
                )
        for name in ("_module", "_optimiser", "_learning"):
            del state[name]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._module = self._optimiser = None
        self._learning = ()


def _torch_name(name: str) -> str:
    """Return what the module calls a weight: names of its parts have no dots."""
    return name.replace("dense.", "dense-", 1) if name.startswith("dense.") else name


def _our_name(name: str) -> str:
    return name.replace("dense-", "dense.", 1) if name.startswith("dense-") else name


def unit_vectors(module: Any, network: Network, ids: Any, mask: Any, precision: str) -> Any:
    """Return the vectors of texts as a tensor of float32 of shape (n, dim), of norm 1.

    Parameters
    ----------
    module : torch.nn.ModuleDict
        Of the network.
    network : Network
    ids, mask : tensor of int64 of shape (n, length)
        As of `Chunk`, on the module's device.
    precision : {"float32", "bfloat16"}
        Of the products of the layers.
    """
    transformer = module["transformer"]
    n = len(ids)
    if n == 1:  # attention of one text alone would be rounded otherwise
        ids, mask = ids.expand(2, -1), mask.expand(2, -1)
    lower = torch().autocast(ids.device.type, torch().bfloat16, enabled=precision == "bfloat16")
    with lower:
        held = transformer(input_ids=ids, attention_mask=mask).last_hidden_state
    vectors = _pooled(held.float(), mask, network.pooling)[:n]
    layers = [layer for name, layer in module.items() if name != "transformer"]
    if layers:
        vectors = vectors[:, None].expand(-1, _COPIES, -1).reshape(n * _COPIES, -1)
        for layer in layers:
            vectors = layer(vectors)
        vectors = vectors[::_COPIES]
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
    share = getattr(_drops, "share", None)
    share = layer.p if share is None else share
    if generator is None or share == 0:
        return output
    stays = torch().empty_like(output).bernoulli_(1.0 - share, generator=generator)
    return output * stays / (1.0 - share)


class Dropping:
    """A context in which this thread drops units at random.

    Parameters
    ----------
    seed : int or None
        None drops nothing.
    share : float or None
        Share of the units; None is the setting of each layer.
    device : torch.device
    """

    def __init__(self, seed: int | None, share: float | None, device: Any) -> None:
        self._seed, self._share, self._device = seed, share, device

    def __enter__(self) -> None:
        if self._seed is not None:
            _drops.generator = torch().Generator(self._device).manual_seed(self._seed)
            _drops.share = self._share

    def __exit__(self, *error: Any) -> None:
        _drops.generator = None
