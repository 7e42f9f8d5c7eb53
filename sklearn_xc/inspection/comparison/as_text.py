"""The comparison of two models for a terminal, at most 100 columns wide."""

import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from sklearn_xc.inspection.comparison.measures import Difference
    from sklearn_xc.inspection.comparison.model_comparison import ModelComparison

_WIDTH = 100
#: Columns of a label's name, and of a model's.
_NAME = 44
_MODEL = 15
#: Rates of false discoveries below this are marked.
MARKED = 0.05
#: Characters of an instance.
_TEXT = 400


def as_text(found: "ModelComparison") -> str:
    """Return the report.

    Parameters
    ----------
    found : ModelComparison
    """
    a, b = (_cut(name, _MODEL) for name in found.names)
    lines = [_cut(heading(found), _WIDTH), "", *_wrapped(found.verdict), ""]
    lines.append(f"{'':<14}{a:>15}{b:>17}{'difference':>12}{interval_name(found):>19}{'p':>8}")
    lines += [f"{one.name:<14}{_numbers(one)}" for one in found.metrics]
    lines += ["", *_wrapped(note_on_chance(found, "marked *"))]
    if found.groups:
        lines += ["", *_wrapped(
            f"Of the true labels, found among the {found.k} best, by how often a label occurs in "
            "training:"
        )]  # fmt: skip
        lines.append(
            f"{'training':<14}{a:>15}{b:>17}{'difference':>12}{interval_name(found):>19}{'p':>8}"
            f"{'labels':>7}{'true':>8}"
        )
        lines += [
            f"{group_name(one):<14}{_numbers(one.recall)}{one.n_labels:>7,}{one.n_true:>8,}"
            for one in found.groups
        ]
    if found.n_shown:
        lines += ["", *_wrapped(summary_of_labels(found))]
    for sign, title in ((1, "gain"), (-1, "lose")):
        lines += _labels(found, sign, title)
    for right in (1, 0):
        lines += _cases(found, right)
    return "\n".join(line.rstrip() for line in lines)


def heading(found: "ModelComparison") -> str:
    """Return what was compared on what."""
    a, b = (f"{name} ({kind})" for name, kind in zip(found.names, found.kinds, strict=True))
    return f"{a} against {b}, on {found.n:,} instances"


def interval_name(found: "ModelComparison") -> str:
    """Return the head of a column of intervals."""
    return f"{100 * found.confidence:g}% interval"


def group_name(group: Any) -> str:
    """Return the frequencies of a group of labels."""
    if group.upper == 0:
        return "never"
    same = group.lower == group.upper
    return f"{group.lower:,}" if same else f"{group.lower:,} to {group.upper:,}"


def note_on_chance(found: "ModelComparison", marked: str) -> str:
    """Return how differences are marked, and how often chance alone has them so.

    Parameters
    ----------
    found : ModelComparison
    marked : str
        What a mark looks like.
    """
    one_in = max(2, round(1 / max(1 - found.confidence, 1e-6)))
    return (
        f"Differences are in percentage points, {marked} where the interval leaves out 0. Of two "
        f"equally good models, about one metric in {one_in:,} is marked so by chance."
    )


def signed(fraction: float) -> str:
    """Return a difference in percentage points."""
    return f"{100 * fraction:+.2f}"


def p_text(p_value: float) -> str:
    """Return a p-value as people write it."""
    return f"{p_value:.2g}" if p_value >= 1e-4 else "<0.0001"


def summary_of_labels(found: "ModelComparison") -> str:
    """Return in a sentence for how many labels the models differ, and for how many clearly."""
    changed = (found.labels.only_a != found.labels.only_b).sum()
    clear = int((found.labels.q_value < MARKED).sum())
    many = "none" if not clear else f"{clear:,}"
    return (
        f"{changed:,} of {len(found.labels.label):,} labels are found more often by one model; "
        f"{many} by so much that it is hardly chance (marked *, false discovery rate below "
        f"{MARKED:.0%})."
    )


def title_of_labels(found: "ModelComparison", title: str) -> str:
    """Return the heading of a list of labels."""
    return f"Labels that {title} most with {found.names[1]}, among the {found.k} best"


def title_of_cases(found: "ModelComparison", right: int) -> str:
    """Return the heading of the instances that one model alone has right."""
    n_all, n = found.n_right_alone[right], sum(case.right == right for case in found.cases)
    drawn = f", {n} of them drawn at random" if n < n_all else ""
    return (
        f"{found.names[right]} has the best label right and {found.names[1 - right]} has it wrong: "
        f"{n_all:,} of {found.n:,} instances{drawn}"
    )


def cut(text: str, width: int) -> str:
    """Return a text on one line, its end left out where it is longer."""
    text = " ".join(text.split())
    return text if len(text) <= width else text[: width - 1] + "…"


_cut = cut


def _numbers(one: "Difference") -> str:
    mark = "*" if one.is_clear else " "
    between = f"{signed(one.low)} to {signed(one.high)}"
    return (
        f"{one.a:>15.1%}{one.b:>17.1%}{signed(one.difference) + mark:>13}{between:>18}"
        f"{p_text(one.p_value):>8}"
    )


def _labels(found: "ModelComparison", sign: int, title: str) -> list[str]:
    labels = found.labels
    shown = labels.best_gains(found.n_shown, sign)
    if not len(shown):
        return []
    lines = ["", title_of_labels(found, title)]
    a, b = (_cut(name, 8) for name in found.names)
    lines.append(
        f"  {'':<{_NAME}}{'training':>9}{'true':>7}{a:>9}{b:>9}{'change':>8}{'q':>8}"
    )  # fmt: skip
    for at in shown.tolist():
        n_train = f"{labels.n_train[at]:,}" if labels.n_train[at] >= 0 else "?"
        change = labels.found_b[at] - labels.found_a[at]
        mark = "*" if labels.q_value[at] < MARKED else " "
        lines.append(
            f"{mark} {_cut(str(found.label_names[labels.label[at]]), _NAME - 1):<{_NAME}}"
            f"{n_train:>9}{labels.n_true[at]:>7,}{labels.found_a[at]:>9,}{labels.found_b[at]:>9,}"
            f"{change:>+8,}{labels.q_value[at]:>8.2g}"
        )
    return lines


def _cases(found: "ModelComparison", right: int) -> list[str]:
    some = [case for case in found.cases if case.right == right]
    if not some:
        return []
    lines = ["", *_wrapped(title_of_cases(found, right))]
    for case in some:
        lines += ["", *_wrapped(f"[{case.row}] {_cut(case.instance, _TEXT)}")]
        lines += _wrapped(f"true: {', '.join(map(str, case.truth))}", "    ")
        for name, answers in zip(found.names, case.answers, strict=True):
            named = [f"{one.label}{'*' if one.is_true else ''} {one.score:+.2f}" for one in answers]
            lines += _wrapped(f"{_cut(name, 24)}: {', '.join(named)}", "    ")
        wrong = found.names[1 - case.right]
        for what, made in case.explanations:
            parts = [f"{name} {number:+.2f}" for name, number in _parts(made)]
            lines += _wrapped(
                f"{_cut(wrong, 24)} on {what}, {made.label} {made.score:+.2f}: {', '.join(parts)}",
                "    ",
            )
        lines += [line for note in case.notes for line in _wrapped(note, "    ")]
    return lines


def _parts(made: Any) -> list[tuple[Any, float]]:
    parts = list(zip(made.features.tolist(), made.contributions.tolist(), strict=True))
    if made.n_other or np.abs(made.other) > 0:
        parts.append(("others", made.other))
    return [*parts, ("intercept", made.intercept)]


def _wrapped(text: str, indent: str = "") -> list[str]:
    lines = textwrap.wrap(text, _WIDTH, initial_indent=indent, subsequent_indent=indent + "  ")
    return lines or [""]
