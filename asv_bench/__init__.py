"""Experiments that measure the package, from a checkout: ``python -m asv_bench --list`` names them.

Every experiment is a module of its own, with ``add_options(parser)`` for the command line and
``main(data, ...)``, which measures, reports and returns its rows::

    __main__.py        the command line
    one_vs_all/  softmax/  decomposition/  embedding/    one folder for each kind of estimator
    defaults/          all estimators on all sets: are their defaults those to defend?
    library/           what is no estimator's: checks, searches, thresholds
        |
        +-- peers/     other systems, each in a process of its own
        +-- common/    data sets, CPU seconds, reports, figures, the environment
    records/           what they measured, as ``--record FILE`` writes it: sizes, hardware, seconds,
                       memory, tables; records.py compares the numbers of the documentation with it
    benchmarks/        small ones that asv repeats over time, with data of their own: README.md

To add one, write its file and give it a line in ``EXPERIMENTS``: its module and what it tells.
"""

EXPERIMENTS = {
    "inits": (
        "one_vs_all.inits",
        "CPU time of one-vs-all training by start vector; why the start matters",
    ),
    "losses": (
        "one_vs_all.losses",
        "CPU time of one-vs-all training by loss, beside the squared hinge",
    ),
    "optimum": (
        "one_vs_all.optimum",
        "distance from LIBLINEAR's optimum, and precision beside it, for 50 labels",
    ),
    "warm_start": (
        "one_vs_all.warm_start",
        "fits that start at the weights of an earlier one",
    ),
    "accuracy": (
        "one_vs_all.accuracy",
        "precision, nDCG and propensity-scored precision beside DiSMEC++",
    ),
    "dense": (
        "one_vs_all.dense",
        "dense X: how far each label is from its optimum, and precision by start",
    ),
    "ova": (
        "one_vs_all.systems",
        "OvALinearXC beside LIBLINEAR, PECOS, omikuji and napkinXC: precision, time, memory",
    ),
    "prediction": (
        "one_vs_all.prediction",
        "rows per second of exact top-k prediction, and recall at a budget per row",
    ),
    "frequencies": (
        "one_vs_all.frequencies",
        "CPU time of a label of one-vs-all by how frequent it is",
    ),
    "saved_models": (
        "library.saved_models",
        "time to open a saved model, and memory of processes that share it, by kind of file",
    ),
    "checkpoints": (
        "library.checkpoints",
        "what checkpoint_dir costs a fit, and what a kill costs with it, by estimator",
    ),
    "model_size": (
        "library.model_size",
        "compact one-vs-all models beside those they come from: size, precision, time, memory",
    ),
    "serving": (
        "library.serving",
        "a saved model behind HTTP: start to first answer, and requests under load",
    ),
    "scaling": (
        "one_vs_all.scaling",
        "time per label and memory of training as labels grow towards a million",
    ),
    "cv": (
        "one_vs_all.cv",
        "time of choosing C by cross-validation: OvALinearXCCV beside GridSearchCV",
    ),
    "ridge": (
        "one_vs_all.ridge",
        "precision and CPU time of one-vs-all by C, on sets at three sizes",
    ),
    "softmax": (
        "softmax.methods",
        "SoftmaxUMax and ImplicitSoftmaxSGD beside biased methods and scikit-learn",
    ),
    "decomposition": (
        "decomposition.progress",
        "DecompMIPSClassifier: searched gradients beside exact ones; time, progress",
    ),
    "loss_decomposition": (
        "decomposition.paper",
        "figures 1 and 2, theorems 1 and 2 of loss decomposition, beside the package's search",
    ),
    "faces": (
        "decomposition.faces",
        "DecompMIPSClassifier on made faces: inner products and learned distances, by CPU time",
    ),
    "ngame": (
        "embedding.samplers",
        "NGAMEEmbeddingXC: samplers by epoch, components, labels never seen, theorems",
    ),
    "transformer": (
        "NGAMEEmbeddingXC with a transformer: frozen, fine-tuned by mini-batches, cost by length",
    ),
    "word_similarity": (
        "skip_gram.similarity",
        "DecompMIPSSkipGram beside gensim: word similarities and analogies by CPU time",
    ),
    "skip_gram_objective": (
        "skip_gram.objective",
        "DecompMIPSSkipGram: the exact objective by gradient, against CPU seconds",
    ),
    "cooccurrence": (
        "skip_gram.cooccurrence",
        "counting which words stand near which: tokens per second, peak memory",
    ),
    "vectors_as_start": (
        "skip_gram.as_start",
        "word vectors as a start of DecompMIPSClassifier and NGAMEEmbeddingXC, by training rows",
    ),
    "defaults": (
        "defaults.defaults",
        "every estimator's defaults beside other settings and peers, on all sets at three sizes",
    ),
    "decisions": (
        "library.decisions",
        "F1 of tuned thresholds, and calibration errors of probabilities, on test rows",
    ),
    "hierarchy": (
        "library.hierarchy",
        "ancestors in answers and in training: hierarchical F1, precision, inconsistent answers",
    ),
    "pruning": (
        "one_vs_all.pruning",
        "what pruning costs new instances, and whether a warning says so",
    ),
    "door": (
        "library.door",
        "what the checks of sparse matrices cost, as a share of fits, answers, metrics, files",
    ),
    "annif": (
        "library.annif_backends",
        "estimators as backends of Annif beside its own: nDCG, F1@5, time",
    ),
    "single_rows": (
        "library.single_rows",
        "how long a single row waits for its best labels: p50 and p99, by estimator",
    ),
    "gridsearch": (
        "library.gridsearch",
        "peak memory and time of GridSearchCV with 200,000 sparse label columns",
    ),
    "splits": (
        "library.splits",
        "how evenly folds share out labels: RareLabelSplit beside iterative stratification",
    ),
    "large": (
        "library.large",
        "peak memory of every call around a model with 200,000 labels, each in its own process",
    ),
    "max_memory": (
        "library.max_memory",
        "peak memory of fits against max_memory, every estimator, five budgets",
    ),
    "costs": (
        "library.costs",
        "what four times as many instances, features, labels cost: time and memory, by estimator",
    ),
    "clusters": ("library.clusters", "one-vs-all on clusters of Dask and Ray, beside threads"),
    "larger_than_memory": (
        "library.larger_than_memory",
        "OvALinearXC on an X in files, ten times as large as max_memory",
    ),
}
