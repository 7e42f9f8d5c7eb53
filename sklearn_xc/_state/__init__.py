"""Saved models: folders of arrays that open at once and run no code.

``models`` saves and opens; ``values`` turns estimators into JSON and named arrays and back, with
the classes that ``classes`` lists; ``tensors`` reads and writes safetensors files. ``checkpoints``
and ``loops`` keep the finished parts of a fit.
"""
