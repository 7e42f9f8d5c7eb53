"""Saved models: folders of arrays that open at once and run no code.

``files`` saves and opens folders; ``values`` turns estimators into JSON and named arrays and back,
from a list of classes; ``schema`` and ``fitted`` guard fitted attributes; ``checkpoints`` keeps the
finished parts of a fit.
"""
