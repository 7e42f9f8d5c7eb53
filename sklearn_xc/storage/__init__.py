"""Saved models: folders of arrays that open at once, and that nothing can be smuggled into.

``models`` saves and opens; ``nodes`` turns states of estimators into JSON and back, with the names
of classes that ``named_classes`` lists; ``folder`` replaces a model all or nothing, with one writer
at a time (``locks``); ``array_files`` checks each megabyte before it is used.
"""
