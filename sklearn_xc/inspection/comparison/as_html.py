"""The comparison of two models for a notebook, and as a page that needs nothing but a browser.

All that comes from data is escaped. Colours are those of the reader's light or dark surroundings;
greys are half transparent, so that they do on both.
"""

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from sklearn_xc.inspection.comparison.as_text import (
    MARKED,
    cut,
    group_name,
    heading,
    interval_name,
    note_on_chance,
    p_text,
    signed,
    summary_of_labels,
    title_of_cases,
    title_of_labels,
)

if TYPE_CHECKING:
    from sklearn_xc.inspection.comparison.cases import Case
    from sklearn_xc.inspection.comparison.measures import Difference
    from sklearn_xc.inspection.comparison.model_comparison import ModelComparison

#: Characters of an instance.
_TEXT = 800
_BLUE, _ORANGE = "#0072B2", "#D55E00"

_STYLE = """
.sxc-cmp { font: 15px/1.45 system-ui, sans-serif; max-width: 62rem; text-align: left; }
.sxc-cmp h1 { font-size: 1.35rem; line-height: 1.25; margin: 0 0 .3rem; }
.sxc-cmp h2 { font-size: 1.05rem; margin: 2rem 0 .4rem; }
.sxc-cmp p { margin: .3rem 0; }
.sxc-cmp .sxc-verdict { font-size: 1.1rem; margin: .8rem 0 1rem; padding: .6rem .9rem;
  border-left: 4px solid #0072B2; background: #8882; }
.sxc-cmp .sxc-note { opacity: .75; font-size: .88rem; }
.sxc-cmp .sxc-wide { overflow-x: auto; }
.sxc-cmp table.sxc-t { border-collapse: collapse; font-variant-numeric: tabular-nums;
  font-size: .92rem; margin: 0; }
.sxc-cmp table.sxc-t th, .sxc-cmp table.sxc-t td { padding: .28rem .6rem; text-align: right;
  white-space: nowrap; border-bottom: 1px solid #8884; background: none; }
.sxc-cmp table.sxc-t th { font-weight: 600; vertical-align: bottom; white-space: normal;
  max-width: 8rem; }
.sxc-cmp table.sxc-t th:first-child, .sxc-cmp table.sxc-t td:first-child { text-align: left;
  padding-left: 0; }
.sxc-cmp td.sxc-name { white-space: normal !important; min-width: 6rem; max-width: 26rem;
  overflow-wrap: anywhere; }
.sxc-cmp .sxc-clear { font-weight: 700; }
.sxc-cmp svg { display: block; width: 120px; height: 15px; }
.sxc-cmp .sxc-case { border: 1px solid #8886; border-radius: 8px; padding: .7rem .9rem;
  margin: .8rem 0; }
.sxc-cmp .sxc-case > p:first-child { margin-top: 0; overflow-wrap: anywhere; }
.sxc-cmp .sxc-cols { display: grid; gap: .4rem 1.6rem;
  grid-template-columns: repeat(2, minmax(0, 1fr)); margin-top: .5rem; }
@media (max-width: 40rem) {
  .sxc-cmp .sxc-cols { grid-template-columns: minmax(0, 1fr); }
  .sxc-cmp table.sxc-t th, .sxc-cmp table.sxc-t td { padding: .28rem .4rem; }
  .sxc-cmp table.sxc-t th { max-width: 5rem; }
}
.sxc-cmp .sxc-cols table { border-collapse: collapse; font-size: .88rem; margin: 0;
  font-variant-numeric: tabular-nums; }
.sxc-cmp .sxc-cols caption { text-align: left; padding: .2rem 0; color: inherit;
  min-width: 12rem; }
.sxc-cmp .sxc-cols td { padding: .1rem .5rem .1rem 0; background: none; border: 0;
  white-space: nowrap; }
.sxc-cmp .sxc-cols td:last-child { white-space: normal; overflow-wrap: anywhere; }
.sxc-cmp .sxc-tag { display: inline-block; border: 1px solid #8888; border-radius: 1em;
  padding: 0 .6em; margin: .1rem .2rem .1rem 0; font-size: .88rem; }
.sxc-cmp .sxc-true { font-weight: 700; }
"""

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; }}
body {{ margin: 1.5rem auto; padding: 0 1rem; max-width: 62rem; }}
</style>
</head>
<body>
{body}
</body>
</html>
"""


def as_page(found: "ModelComparison") -> str:
    """Return a page of its own.

    Parameters
    ----------
    found : ModelComparison
    """
    return _PAGE.format(title=escape(heading(found)), body=as_fragment(found))


def as_fragment(found: "ModelComparison") -> str:
    """Return what goes inside a page.

    Parameters
    ----------
    found : ModelComparison
    """
    a, b = (escape(name) for name in found.names)
    trained = [
        f"{name}: {n:,}" for name, n in zip((a, b), found.n_trained, strict=True) if n is not None
    ]
    parts = [
        f"<div class='sxc-cmp'><style>{_STYLE}</style>",
        f"<h1>{a} against {b}</h1>",
        f"<p class='sxc-note'>{escape(' and '.join(dict.fromkeys(found.kinds)))}, on {found.n:,} "
        f"instances{'; trained on ' + ', '.join(trained) if trained else ''}</p>",
        f"<p class='sxc-verdict'>{escape(found.verdict)}</p>",
        "<h2>Metrics</h2>",
        _differences(found, "", [(one.name, one, ()) for one in found.metrics], ()),
        f"<p class='sxc-note'>{escape(note_on_chance(found, 'bold'))}</p>",
    ]
    if found.groups:
        rows = [
            (group_name(one), one.recall, (f"{one.n_labels:,}", f"{one.n_true:,}"))
            for one in found.groups
        ]
        parts += [
            "<h2>Rare and frequent labels</h2>",
            f"<p>Of the true labels, found among the {found.k} best, by how often a label occurs "
            "in training.</p>",
            _differences(found, "training instances", rows, ("labels", "true")),
        ]
    parts.append(_labels(found))
    for right in (1, 0):
        some = [case for case in found.cases if case.right == right]
        if some:
            parts.append(f"<h2>{escape(title_of_cases(found, right))}</h2>")
            parts += [_case(found, case) for case in some]
    return "\n".join([*parts, "</div>"])


def _differences(
    found: "ModelComparison",
    first: str,
    rows: Sequence[tuple[str, "Difference", tuple[str, ...]]],
    others: tuple[str, ...],
) -> str:
    reach = max((abs(end) for _, one, _ in rows for end in (one.low, one.high)), default=0) or 1.0
    a, b = (escape(name) for name in found.names)
    head = [first, a, b, "difference", interval_name(found), "", "p", *others]
    body = []
    for name, one, more in rows:
        clear = " class='sxc-clear'" if one.is_clear else ""
        cells = [
            f"<td>{escape(name)}</td><td>{one.a:.1%}</td><td>{one.b:.1%}</td>"
            f"<td{clear}>{signed(one.difference)}</td>",
            f"<td>{signed(one.low)} to {signed(one.high)}</td><td>{_bar(one, reach)}</td>",
            f"<td>{escape(p_text(one.p_value))}</td>",
            *(f"<td>{escape(cell)}</td>" for cell in more),
        ]
        body.append(f"<tr>{''.join(cells)}</tr>")
    return _table(head, body)


def _bar(one: "Difference", reach: float) -> str:
    """Return a drawing of an interval around 0, `reach` to both sides."""
    low, high, at = (75 + 70 * value / reach for value in (one.low, one.high, one.difference))
    colour = "#888" if not one.is_clear else _BLUE if one.low > 0 else _ORANGE
    return (
        "<svg viewBox='0 0 150 18' role='img' aria-hidden='true'>"
        "<line x1='75' y1='0' x2='75' y2='18' stroke='#8888' stroke-width='1'/>"
        f"<line x1='{low:.1f}' y1='9' x2='{high:.1f}' y2='9' stroke='{colour}' stroke-width='4' "
        f"stroke-linecap='round'/><circle cx='{at:.1f}' cy='9' r='4.5' fill='{colour}'/></svg>"
    )


def _labels(found: "ModelComparison") -> str:
    labels = found.labels
    a, b = (escape(name) for name in found.names)
    parts = []
    for sign, title in ((1, "gain"), (-1, "lose")):
        shown = labels.best_gains(found.n_shown, sign)
        if not len(shown):
            continue
        body = []
        for at in shown.tolist():
            clear = bool(labels.q_value[at] < MARKED)
            n_train = f"{labels.n_train[at]:,}" if labels.n_train[at] >= 0 else "?"
            change = f"{labels.found_b[at] - labels.found_a[at]:+,}{' *' if clear else ''}"
            cells = [
                change, f"{labels.found_a[at]:,}", f"{labels.found_b[at]:,}",
                f"{labels.n_true[at]:,}", n_train, f"{labels.q_value[at]:.2g}",
            ]  # fmt: skip
            name = escape(cut(str(found.label_names[labels.label[at]]), 200))
            body.append(
                f"<tr><td class='sxc-name{' sxc-clear' * clear}'>{name}</td>"
                + "".join(f"<td>{cell}</td>" for cell in cells)
                + "</tr>"
            )
        head = ["", "change", a, b, "true", "training", "q"]
        parts += [f"<h2>{escape(title_of_labels(found, title))}</h2>", _table(head, body)]
    if parts:
        parts.append(
            f"<p class='sxc-note'>{escape(summary_of_labels(found))} q is the false discovery rate "
            "of a sign test; without a mark, a change of a few instances says little.</p>"
        )
    return "\n".join(parts)


def _case(found: "ModelComparison", case: "Case") -> str:
    tags = "".join(f"<span class='sxc-tag'>{escape(str(one))}</span>" for one in case.truth)
    columns = []
    for name, answers in zip(found.names, case.answers, strict=True):
        rows = "".join(
            f"<tr{' class=sxc-true' if one.is_true else ''}><td>{'✓' if one.is_true else ''}</td>"
            f"<td>{one.score:+.2f}</td><td>{escape(str(one.label))}</td></tr>"
            for one in answers
        )
        columns.append(
            f"<div><table><caption><b>{escape(name)}</b> answers</caption>{rows}</table></div>"
        )
    wrong = escape(found.names[1 - case.right])
    for what, made in case.explanations:
        columns.append(
            f"<div><p class='sxc-note'>why {wrong} scores {escape(what)} so</p>"
            f"{made._repr_html_()}</div>"
        )
    notes = "".join(f"<p class='sxc-note'>{escape(note)}</p>" for note in case.notes)
    return (
        f"<div class='sxc-case'><p><span class='sxc-note'>[{case.row}]</span> "
        f"{escape(cut(case.instance, _TEXT))}</p><p>{tags}</p>"
        f"<div class='sxc-cols'>{''.join(columns)}</div>{notes}</div>"
    )


def _table(head: list[str], body: list[Any]) -> str:
    cells = "".join(f"<th>{cell}</th>" for cell in head)
    return (
        f"<div class='sxc-wide'><table class='sxc-t'><thead><tr>{cells}</tr></thead>"
        f"<tbody>{''.join(body)}</tbody></table></div>"
    )
