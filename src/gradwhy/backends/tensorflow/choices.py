"""Values that left TensorFlow and never came back, but chose what ran: `if loss > limit`, `for _ in range(int(steps))`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from gradwhy.backends.tensorflow import records as rec
from gradwhy.backends.tensorflow.describe import Draft, Fed, Slice
from gradwhy.backends.tensorflow.doors import TRUTH
from gradwhy.backends.tensorflow.scopes import TapeScope
from gradwhy.flow import Barrier, Passage, Span
from gradwhy.source.choices import chosen_lines
from gradwhy.source.positions import span_of

_MOST_EXITS = 64
_MOST_RECORDS = 2_000


def add_choices(slice_: Slice, exits: Iterable[rec.Written], scope: TapeScope, missing: list[Any]) -> bool:
    """Join what the missing sources decided, while the tape was open, with what ran by that decision; whether any did.

    Only where one of the target's own ops ran in the lines that were chosen.
    """
    wanted = {id(made.record) for made in missing}
    found = False
    held = [e for e in exits if scope.number in e.record[rec.SCOPES] and e.record[rec.FRAMES]]
    for exit in sorted(held, key=lambda e: e.record[rec.TIME])[-_MOST_EXITS:]:
        if not _comes_from(exit, wanted):
            continue
        span = span_of(*exit.record[rec.FRAMES][0])
        draft = _first_chosen(slice_.drafts, span, exit.record[rec.TIME]) if span is not None else None
        if draft is None:
            continue
        origin = exit.record[rec.INPUTS][0] if exit.record[rec.OP] == TRUTH else exit
        draft.inputs.append(Fed(origin, Passage.NOTHING, Barrier.CONDITION, False, span))
        slice_.value(origin)
        found = True
    if found:
        slice_.grow()
    return found


def _comes_from(exit: rec.Written, wanted: set[int]) -> bool:
    """Whether a value that left was made from one of the wanted records."""
    seen: set[int] = set()
    todo = list(exit.record[rec.INPUTS])
    while todo and len(seen) < _MOST_RECORDS:
        record = todo.pop().record
        if record is rec.NUMBER or id(record) in seen:
            continue
        if id(record) in wanted:
            return True
        seen.add(id(record))
        if record[rec.OP] is not rec.VARIABLE:
            todo.extend(record[rec.INPUTS])
    return False


def _first_chosen(drafts: list[Draft], span: Span, time: int) -> Draft | None:
    """The first op of the target's ancestry that ran after `time` in the lines that the value at `span` chose."""
    lines = chosen_lines(span)
    later = [
        draft
        for draft in drafts
        if draft.order[0] > time
        and not draft.is_backward
        and any(p.span.file == span.file and _is_in(p.span.line, lines) for p in draft.places)
    ]
    return min(later, key=lambda draft: draft.order, default=None)


def _is_in(line: int, lines: tuple[tuple[int, int], ...]) -> bool:
    return any(first <= line <= last for first, last in lines)
