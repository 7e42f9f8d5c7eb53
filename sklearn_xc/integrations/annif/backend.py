"""The backend ``sklearn_xc`` as Annif calls it."""

import copy
import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import joblib
import numpy as np
from annif.backend.hyperopt import (
    AnnifHyperoptBackend,
    HPObjective,
    HPRecommendation,
    HyperparameterOptimizer,
)
from annif.eval import EvaluationBatch
from annif.exception import (
    ConfigurationException,
    NotInitializedException,
    NotSupportedException,
    OperationFailedException,
)
from annif.suggestion import SuggestionBatch
from scipy.sparse import csr_array

from sklearn_xc import load
from sklearn_xc.exceptions import SavedModelError
from sklearn_xc.integrations.annif import tagging
from sklearn_xc.integrations.annif.settings import (
    BACKEND,
    DEFAULTS,
    SettingsError,
    read_count,
    read_settings,
)

#: Least and largest values that `annif hyperopt` tries.
_CS, _MIN_DFS = (0.1, 4.0), (1, 3)


class _Objective(HPObjective):
    """Trains a project with other settings, without calibration, and scores documents held out."""

    @classmethod
    def objective(cls, trial: Any, args: dict[str, Any]) -> float:
        backend, metric, test = copy.copy(args["backend"]), args["metric"], args["test"]
        params = {
            **backend.params,
            "calibration": "none",
            "set.C": trial.suggest_float("set.C", *_CS, log=True),
            "min_df": trial.suggest_int("min_df", *_MIN_DFS),
        }
        backend._use(backend._make_model(params).fit(*args["train"]))
        batch = EvaluationBatch(backend.project.subjects)
        subjects = [document.subject_set for document in test]
        batch.evaluate_many(backend._suggest_batch(test, params), subjects)
        return float(batch.results(metrics=[metric])[metric])


class _Optimizer(HyperparameterOptimizer):
    """Tells the objective its documents, of which it holds out every fifth."""

    def _prepare(self, n_jobs: int = 1) -> dict[str, Any]:
        documents = list(self._corpus.documents)
        kept = SimpleNamespace(documents=[one for i, one in enumerate(documents) if i % 5])
        train = self._backend._read(kept)
        test = documents[::5]
        return {"backend": self._backend, "train": train, "test": test, "metric": self._metric}

    def _postprocess(self, study: Any) -> HPRecommendation:
        lines = [f"{name}={value:.3g}" for name, value in study.best_params.items()]
        return HPRecommendation(lines, study.best_value)


class SklearnXCBackend(AnnifHyperoptBackend):
    """An estimator of sklearn_xc behind a project of Annif.

    The model is a folder in that of the project: a saved ``TextClassifierXC`` whose labels are
    URIs, so that it outlives a vocabulary that is loaded again in another order.
    """

    name = BACKEND
    MODEL_FOLDER = "sklearn_xc-model"
    DEFAULT_PARAMETERS = DEFAULTS

    _model: Any = None
    _subject_ids: np.ndarray

    def initialize(self, parallel: bool = False) -> None:
        """Load the model, if it is not there yet.

        Parameters
        ----------
        parallel : bool, default=False
            Whether several processes will use it; all the same here.

        Raises
        ------
        NotInitializedException
            If the project is not trained.
        OperationFailedException
            For a model that is damaged, or of a newer version.
        """
        if self._model is not None:
            return
        path = os.path.join(self.datadir, self.MODEL_FOLDER)
        if not os.path.exists(path):
            raise NotInitializedException(
                f"there is no model {path}. Train the project first.", backend_id=self.backend_id
            )
        self.debug(f"loading {path}")
        try:
            model = load(path)
        except SavedModelError as error:
            raise OperationFailedException(
                f"{error} Train the project again.", backend_id=self.backend_id
            ) from error
        self._use(model)

    def get_hp_optimizer(self, corpus: Any, metric: str) -> HyperparameterOptimizer:
        """Return an optimizer of ``set.C`` and ``min_df``.

        Parameters
        ----------
        corpus : annif.corpus.DocumentCorpus
            Documents with subjects: every fifth is held out.
        metric : str
            One of Annif's.

        Returns
        -------
        HyperparameterOptimizer

        Raises
        ------
        ConfigurationException
            For an estimator without C.
        """
        self._configured(lambda: self._make_model({**self.params, "set.C": 1.0}))
        return _Optimizer(self, corpus, metric, _Objective)

    def _train(self, corpus: Any, params: dict[str, Any], jobs: int = 0) -> None:
        if corpus == "cached":
            raise NotSupportedException(
                "train --cached: the backend keeps no training data. Name the documents.",
                backend_id=self.backend_id,
            )
        model = self._configured(lambda: self._make_model(params))
        texts, uris = self._read(corpus)
        self.info(f"training on {len(texts)} documents")
        with self._reporting(), joblib.parallel_config("threading", n_jobs=jobs or -1):
            model.fit(texts, uris)
        self.info("saving the model")
        os.makedirs(self.datadir, exist_ok=True)
        model.save(os.path.join(self.datadir, self.MODEL_FOLDER))
        self._use(model)

    def _suggest_batch(self, documents: list[Any], params: dict[str, Any]) -> SuggestionBatch:
        limit = self._configured(lambda: read_count(params, "limit", 100))
        n_gone = int((self._subject_ids < 0).sum())
        k = min(limit + n_gone, len(self._subject_ids))
        positions, scores = tagging.suggest(
            self._model, [self._words(document.text) for document in documents], k
        )
        subjects = np.where(positions >= 0, self._subject_ids[positions], -1)
        found = subjects >= 0
        found &= np.cumsum(found, axis=1) <= limit
        rows, ranks = np.nonzero(found)
        shape = (len(documents), len(self.project.subjects))
        entries = (scores[rows, ranks], (rows, subjects[rows, ranks]))
        return SuggestionBatch(csr_array(entries, shape=shape, dtype=np.float32))

    def _make_model(self, params: dict[str, Any]) -> Any:
        settings = read_settings(params)
        texts = self._label_texts() if tagging.reads_label_texts(settings) else None
        return tagging.make_model(settings, texts, are_words=bool(self.project.analyzer_spec))

    def _words(self, text: str) -> str:
        """Return the words that the project's analyzer finds, or the text where it has none."""
        if not self.project.analyzer_spec:
            return text
        return " ".join(self.project.analyzer.tokenize_words(text))

    def _label_texts(self) -> dict[str, str]:
        """Return the preferred label of each subject in the language of the project, by URI."""
        language = self.project.vocab_lang
        return {
            subject.uri: self._words(subject.labels[language])
            for _, subject in self.project.subjects.active
            if subject.labels.get(language)
        }

    def _read(self, corpus: Any) -> tuple[list[str], list[list[str]]]:
        """Return the words and the URIs of all documents that have both."""
        texts = []
        uris = []
        n_left_out = 0
        subjects = self.project.subjects
        for document in corpus.documents:
            words = self._words(document.text)
            if not words.strip() or not document.subject_set:
                n_left_out += 1
                continue
            texts.append(words)
            uris.append([subjects[subject].uri for subject in document.subject_set])
        if n_left_out:
            self.info(f"{n_left_out} documents without words or subjects are left out")
        if not texts:
            raise NotSupportedException(
                "no document has both words and subjects of the vocabulary.",
                backend_id=self.backend_id,
            )
        return texts, uris

    def _use(self, model: Any) -> None:
        """Take a model, and find its subjects in the vocabulary; -1 for those no longer there."""
        found = [self.project.subjects.by_uri(uri, warnings=False) for uri in model.classes_]
        self._subject_ids = np.array([-1 if one is None else one for one in found], np.int64)
        self._model = model

    def _configured(self, read: Callable[[], Any]) -> Any:
        try:
            return read()
        except SettingsError as error:
            raise ConfigurationException(str(error), project_id=self.project.project_id) from error

    @contextmanager
    def _reporting(self) -> Iterator[None]:
        """Have errors and warnings of a fit be Annif's."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", UserWarning)
            try:
                yield
            except (ValueError, TypeError, MemoryError) as error:
                raise OperationFailedException(
                    str(error) or type(error).__name__, backend_id=self.backend_id
                ) from error
            finally:
                for text in dict.fromkeys(str(one.message) for one in caught):
                    self.warning(text)
