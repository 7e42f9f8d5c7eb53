"""The command line: ``python -m sklearn_xc fit | tag | evaluate | compile``, or ``sklearn-xc``.

main.py             parses the arguments, runs a command, turns errors into one sentence
fit.py              a table with texts and labels becomes a model
tag.py              a table gets two more columns: labels and their scores
evaluate.py         metrics of a model on a labelled table
compile_kernels.py  compiles the numba kernels ahead of time
models.py           the estimators of ``--estimator``, and saved models with their columns
tables.py           CSV, TSV, JSON lines and Parquet as data frames, through pandas and pyarrow

Heavy imports are made by the command that needs them: a mistyped option is answered at once.
"""

from sklearn_xc.command_line.main import main

__all__ = ["main"]
