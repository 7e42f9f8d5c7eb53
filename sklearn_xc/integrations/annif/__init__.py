"""Annif's command line and server, with our estimators as a backend ``sklearn_xc``.

Annif has a fixed list of backends and no way for others to add theirs, so that it is started from
here: ``python -m sklearn_xc.integrations.annif`` takes the commands that ``annif`` takes::

    __main__.py             Annif's command line, once the backend is known to it
    backend.py              the backend as Annif calls it; imports Annif
        |
        +-- settings.py     settings of a project in projects.cfg
        +-- tagging.py      the model behind it: texts and URIs in, subjects and scores out

Only ``backend.py`` needs Annif, and it is imported when it is used.
"""

from typing import Any

from sklearn_xc.integrations.annif.settings import BACKEND

__all__ = ["create_app", "register"]


def register() -> None:
    """Have Annif know the backend ``sklearn_xc`` in this process; a second call does nothing.

    Raises
    ------
    ImportError
        Where Annif is not installed.
    """
    import annif.backend

    others = annif.backend.get_backend
    if getattr(others, "knows_sklearn_xc", False):
        return

    def get_backend(backend_id: str) -> Any:
        if backend_id != BACKEND:
            return others(backend_id)
        from sklearn_xc.integrations.annif.backend import SklearnXCBackend

        return SklearnXCBackend

    get_backend.knows_sklearn_xc = True  # type: ignore[attr-defined]
    annif.backend.get_backend = get_backend


def create_app(config_name: str | None = None) -> Any:
    """Return Annif's web application, REST API included, for servers such as uvicorn or gunicorn.

    Parameters
    ----------
    config_name : str, default=None
        As of ``annif.create_app``.

    Returns
    -------
    connexion.FlaskApp
        An ASGI application.

    Raises
    ------
    ImportError
        Where Annif is not installed.
    """
    import annif

    register()
    return annif.create_app(config_name)
