"""A write in place changed a value that the backward pass needs, or was refused."""

from __future__ import annotations

from gradwhy.diagnose.claims import elsewhere
from gradwhy.diagnose.lost import Claim, Lost
from gradwhy.diagnose.wording import text
from gradwhy.flow import Label, Overwritten

GOES_BEFORE = ("unknown", "unused", "not-watched", "rebound", "frozen", "non-leaf")


def recognise(lost: Lost) -> Claim | None:
    """A claim where the framework complains of a write in place."""
    failure = lost.question.failure
    if failure is None or failure.kind not in ("changed-in-place", "leaf-in-place"):
        return None
    if failure.kind == "leaf-in-place":
        return elsewhere(lost, "in-place", lost.question.span, label="leaf", help="no-grad")
    written = failure.overwritten
    if written is None:
        return elsewhere(lost, "in-place", failure.span or lost.question.span, label="not-seen", help="not-seen")
    labels = (Label(written.kept, text("in-place/labels/saved", name=written.name)),) if written.kept else ()
    notes = (
        (text("in-place/notes/optimizer", line=written.span.line),) if written.is_by_optimizer and written.span else ()
    )
    place = written.span or lost.question.span
    return elsewhere(lost, "in-place", place, help=_help(written), labels=labels, notes=notes, name=written.name)


def _help(written: Overwritten) -> str:
    if written.is_by_optimizer:
        return "step-order"
    return "stack" if written.is_in_part else "default"
