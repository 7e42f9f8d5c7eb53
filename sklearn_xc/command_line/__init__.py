"""From a table to a model, and from a model to tags, without a line of Python.

``python -m sklearn_xc fit | tag | evaluate | compile``, which is also installed
as ``sklearn-xc``::

    arguments.py                what may be said on the command line
        |
    running.py                  runs a command; whatever goes wrong is one sentence and a number
        |
        +-- fit.py              a table to a model        estimators.py, label_texts.py,
        |                                                 swapped_columns.py
        +-- tag.py              a model and a table to a table with labels      tagged_tables.py,
        |                                                 allowed_names.py
        +-- evaluate.py         a model and a labelled table to numbers         quality.py
        +-- compile_kernels.py  the inner loops, compiled beforehand
        |
    model_files.py              models on disk
    outputs.py                  files that appear when they are complete
    labelled_rows.py            texts and labels of all rows
    cells.py                    texts and names in the cells of a row
    tables.py                   a table by its kind: rows as dictionaries
        +-- delimited.py  json_lines.py  parquet.py
    sources.py                  files, standard input, decompression, lines of text
    progress.py  errors.py

What takes long to import (the estimators, scikit-learn, numpy) is imported where it is used, so
that a mistyped option is answered at once.
"""

from sklearn_xc.command_line.running import main

__all__ = ["main"]
