"""Checks of an estimator with a sparse y, each a function ``check_...(name, estimator)``."""

from checks import answers, instances, memory, selection, targets, training

CHECKS = [
    check
    for module in (targets, instances, answers, training, selection, memory)
    for name, check in vars(module).items()
    if name.startswith("check_") and check.__module__ == module.__name__
]
