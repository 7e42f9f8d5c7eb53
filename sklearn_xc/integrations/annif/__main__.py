"""Annif's own command line, with the backend ``sklearn_xc``."""

from sklearn_xc.integrations.annif import register

if __name__ in ("__main__", "__mp_main__"):  # the latter where Annif starts fresh processes
    register()

if __name__ == "__main__":
    from annif.cli import cli

    cli(prog_name="python -m sklearn_xc.integrations.annif")
