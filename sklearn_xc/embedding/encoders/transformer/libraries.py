"""The one place that imports PyTorch and what reads its models: only when they are used."""

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


def library(name: str) -> Any:
    """Return a module of the extra; ImportError names what to install."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ImportError(
            f'TransformerEncoder needs {name}: pip install "sklearn-xc[transformer]". '
            "encoder='bag' needs nothing."
        ) from error


def torch() -> Any:
    """Return the module torch."""
    return library("torch")


@contextmanager
def quiet() -> Iterator[None]:
    """Return a context in which models are read and written without progress bars and warnings."""
    logging = library("transformers").utils.logging
    level = logging.get_verbosity()
    has_bar = logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if has_bar:
            logging.enable_progress_bar()


@contextmanager
def one_thread() -> Iterator[None]:
    """Return a context in which this thread computes alone, where torch would start more."""
    before = torch().get_num_threads()
    torch().set_num_threads(1)
    try:
        yield
    finally:
        torch().set_num_threads(before)
