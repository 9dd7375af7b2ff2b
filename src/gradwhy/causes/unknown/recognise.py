"""The path cannot be followed past a place."""

from __future__ import annotations

from gradwhy.diagnose.claims import elsewhere
from gradwhy.diagnose.lost import Claim, Lost, span_of
from gradwhy.diagnose.wording import text
from gradwhy.flow import Text

GOES_BEFORE = ()


def recognise(lost: Lost) -> Claim | None:
    """A claim for every source that no other cause explains, with the reason why."""
    if lost.path is not None:
        notes: tuple[Text, ...] = (text("unknown/notes/complete-path"),)
        spans = [span_of(p) for p in lost.path.steps]
        place = next((s for s in spans if s), lost.question.span)
    else:
        notes = tuple(text(f"unknown/notes/{reason.value}") for reason in sorted(lost.dead_ends)) or (
            text("unknown/notes/not-seen"),
        )
        place = lost.question.target_span or lost.question.span
    return elsewhere(lost, "unknown", place, notes=notes)
