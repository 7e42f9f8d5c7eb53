"""Backends for other programs, one folder each.

Nothing here is imported by the rest of the package, and none of these programs is needed unless its
folder is imported. ``annif/`` serves our estimators in Annif, which libraries index subjects with.
"""

__all__: list[str] = []
