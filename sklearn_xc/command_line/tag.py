"""``tag``: a table gets two more columns, the labels of a model and their scores."""

import math
import sys
from contextlib import nullcontext
from typing import Any

from sklearn_xc.command_line.models import load_model
from sklearn_xc.command_line.tables import (
    CommandError,
    as_text,
    format_of,
    read_chunks,
    say,
    texts_of,
    without_formula,
)

_DEFAULT_K = 5
#: Limit on the labels of a row that are compared with a threshold.
_MAX_PAST_THRESHOLD = 100

#: Labels of a row and their scores, best first.
Tags = list[tuple[Any, float]]


def run(options: Any) -> None:
    """Write a table with labels."""
    from sklearn_xc._state.files import open_atomic

    kind = options.format or format_of(options.table) or "csv"
    if options.out != "-":
        kind = format_of(options.out) or kind
        if kind == "parquet":
            raise CommandError(f"--out {options.out}: expected a name in .csv, .tsv or .jsonl.")
    model, text_columns, _, separator = load_model(options)
    separator = separator or ";"
    scores = "probabilities" if _has_probabilities(model) else "scores"
    added = "predicted_labels", f"predicted_{scores}"
    allowed = _read_allowed(model, options)
    n_rows = 0
    is_stdout = options.out == "-"
    with nullcontext(sys.stdout.buffer) if is_stdout else open_atomic(options.out) as stream:
        for frame in read_chunks(options.table, {"--text": text_columns}, options):
            if set(added) & set(frame.columns):
                raise CommandError(f"{options.table}: has a column {' or '.join(added)} already.")
            tags = _tags_of(model, texts_of(frame, text_columns), options, allowed)
            stream.write(_as_bytes(frame, tags, added, kind, separator, not n_rows))
            n_rows += len(frame)
    if not options.quiet:
        say(f"{n_rows:,} rows to {'standard output' if is_stdout else options.out}")


def _as_bytes(
    frame: Any, tags: list[Tags], added: tuple[str, str], kind: str, separator: str, is_first: bool
) -> bytes:
    """Return a data frame with two more columns as JSON lines or a delimited table."""
    names = [[as_text(name) for name, _ in row] for row in tags]
    scores = [[f"{score:.4g}" for _, score in row] for row in tags]
    if kind == "jsonl":
        values: Any = names, [[float(score) for score in row] for row in scores]
        frame = frame.assign(**dict(zip(added, values, strict=True)))
        text = frame.to_json(orient="records", lines=True, force_ascii=False, double_precision=15)
    else:
        names = [map(without_formula, row) for row in names]
        values = [[separator.join(row) for row in column] for column in (names, scores)]
        frame = frame.assign(**dict(zip(added, values, strict=True)))
        for name in frame.select_dtypes(object):
            frame[name] = frame[name].map(as_text)
        sep = "\t" if kind == "tsv" else ","
        text = frame.to_csv(sep=sep, header=is_first, index=False, lineterminator="\n")
    return text.encode()  # type: ignore[no-any-return]


def _read_allowed(model: Any, options: Any) -> dict[str, Any]:
    """Return ``candidates`` or ``exclude`` of ``predict_topk``: names in the lines of a file."""
    for argument in ("candidates", "exclude"):
        path = getattr(options, argument)
        if path is None:
            continue
        with open(path, encoding="utf-8-sig") as file:
            given = {name for line in file if (name := line.strip())}
        known = {as_text(name): name for name in model.classes_.tolist()}
        if not given & known.keys():
            raise CommandError(f"--{argument} {path}: no line is the name of a label of the model.")
        return {argument: [known[name] for name in sorted(given & known.keys())]}
    return {}


def _tags_of(model: Any, texts: list[str], options: Any, allowed: dict[str, Any]) -> list[Tags]:
    if not texts:  # a table with a header alone
        return []
    if options.predicted:
        k = getattr(model.classifier_, "top_k", _MAX_PAST_THRESHOLD)
        answers = [
            set(names) if isinstance(names, list) else {names} for names in model.predict(texts)
        ]
        best = _best(model, texts, k, allowed)
        found = [
            [tag for tag in row if tag[0] in names]
            for row, names in zip(best, answers, strict=True)
        ]
    elif options.threshold is not None:
        best = _best(model, texts, options.k or _MAX_PAST_THRESHOLD, allowed)
        found = [[tag for tag in row if tag[1] >= options.threshold] for row in best]
    else:
        found = _best(model, texts, options.k or _DEFAULT_K, allowed)
    return [row[: options.k] for row in found]


def _best(model: Any, texts: list[str], k: int, allowed: dict[str, Any]) -> list[Tags]:
    """Return the k best labels by score, with scores or with probabilities."""
    predict = model.predict_proba_topk if _has_probabilities(model) else model.predict_topk
    labels, scores = predict(texts, min(k, len(model.classes_)), **allowed)
    kept = (labels >= 0) & (scores > -math.inf)
    return [
        list(zip(model.classes_[row[some]].tolist(), values[some].tolist(), strict=True))
        for row, values, some in zip(labels, scores, kept, strict=True)
    ]


def _has_probabilities(model: Any) -> bool:
    return hasattr(model, "predict_proba_topk")
