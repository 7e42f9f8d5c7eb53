"""Experiments behind the figures of the documentation: ``python -m asv_bench --list`` names them.

An experiment is a module with ``add_options(parser)`` for the command line, and with
``main(options, report)``, which measures, reports tables and returns their rows::

    __main__.py        the command line
    defaults/          every estimator's default beside other settings and peers, on all sets
    one_vs_all/  softmax/  decomposition/  embedding/  skip_gram/     the papers' figures
    library/           thresholds, probabilities, hierarchies, Annif
        |
        +-- peers/     other systems
        +-- common/    data sets, measures, processes, reports
    records/           their results, as ``--record FILE`` writes them; records.py compares the
                       numbers of the documentation with them
    benchmarks/        small ones that asv repeats over time, with data of their own: README.md
"""

EXPERIMENTS = {
    "defaults": "defaults.defaults",
    "ova": "one_vs_all.trees",
    "inits": "one_vs_all.inits",
    "warm_start": "one_vs_all.warm_start",
    "softmax": "softmax.paper",
    "loss_decomposition": "decomposition.paper",
    "ngame": "embedding.samplers",
    "skip_gram_objective": "skip_gram.objective",
    "word_similarity": "skip_gram.similarity",
    "decisions": "library.decisions",
    "hierarchy": "library.hierarchy",
    "label_errors": "library.label_errors",
    "search": "library.search",
    "annif": "library.annif_backends",
}
