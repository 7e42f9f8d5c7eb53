"""Experiments that measure the package: ``python -m sklearn_xc.bench`` lists them.

Every experiment is a module of its own, with ``add_options(parser)`` for the command line and
``main(data, ...)``, which measures, reports and returns its rows::

    __main__.py    the command line
    door.py  inits.py  inits_trace.py  optimum.py  accuracy.py  gridsearch.py  ova.py  ova_figure.py
    pruning.py  prediction.py  scaling.py  cv.py  softmax.py  softmax_curves.py  decomposition.py
    ngame.py
        |
        +-- biased_softmax.py  numpy_softmax.py    what softmax.py compares
        +-- decomposition_training.py  _gradients.py  _curves.py  _figures.py    its parts
        +-- ngame_curves.py  ngame_batches.py  label_texts.py    parts of ngame.py, and its sets
        +-- peers/           the systems that ova.py compares
        +-- data.py          the data sets, as training and test matrices
        +-- measure.py       CPU seconds, fits without their warnings, peak memory
        +-- report.py        what is printed and kept: tables, notes, figures
        +-- environment.py   versions, processor, threads, date

To add one, write its file and give it a line here.
"""

EXPERIMENTS = {
    "inits": "CPU time of one-vs-all training by start vector; why the start matters",
    "optimum": "distance from LIBLINEAR's optimum, and precision beside it, for 50 labels",
    "accuracy": "precision, nDCG and propensity-scored precision beside DiSMEC++",
    "ova": "OvALinearXC beside LIBLINEAR, PECOS, omikuji and napkinXC: precision, time, memory",
    "prediction": "rows per second of exact top-k prediction, and recall at a budget per row",
    "scaling": "time per label and memory of training as labels grow towards a million",
    "cv": "time of choosing C by cross-validation: OvALinearXCCV beside GridSearchCV",
    "softmax": "SoftmaxUMax and ImplicitSoftmaxSGD beside biased methods and scikit-learn",
    "decomposition": "DecompMIPSClassifier: searched gradients beside exact ones; time, progress",
    "ngame": "NGAMEEmbeddingXC: samplers by epoch, components, labels never seen in training",
    "pruning": "what pruning costs new instances, and whether a warning says so",
    "door": "what the checks of sparse matrices cost, as a share of fits, answers, metrics, files",
    "gridsearch": "peak memory and time of GridSearchCV with 200,000 sparse label columns",
}
