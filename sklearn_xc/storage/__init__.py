"""Saved models: folders of arrays that open at once, and that nothing can be smuggled into.

``models`` saves and opens, ``reports`` tells of a model without making it; ``nodes`` turns states
of estimators into JSON and back, with the names of classes that ``named_classes`` lists, some
records in a form of their own (``forms``), and those of others checked (``foreign``); ``folder``
replaces a model all or nothing, ``array_files`` checks each megabyte before it is used,
``tensor_files`` has the arrays of a network in one file.
``checkpoints`` keeps the finished parts of a fit. Both know where a folder may be (``places``),
have one writer at a time (``locks``), and say what they are in JSON with a checksum
(``signed_json``).
"""
