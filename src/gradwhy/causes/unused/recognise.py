"""The source takes no part in the target."""

from __future__ import annotations

from gradwhy.diagnose.claims import elsewhere
from gradwhy.diagnose.lost import Claim, Lost
from gradwhy.flow import Severity, Status

GOES_BEFORE = ("unknown",)


def recognise(lost: Lost) -> Claim | None:
    """A claim where the target's whole ancestry is known and the source is not in it."""
    if lost.path is not None or not lost.is_complete:
        return None
    asked = lost.asked
    if lost.question.order > 1:
        # What does not depend on a source has a derivative of zero, and that is the right answer.
        place = asked.last_use or lost.question.span
        return elsewhere(lost, "unused", place, label="cut", help="derivative-zero", severity=Severity.NOTE)
    if lost.symptom is Status.ZERO:
        # Zeros in a missing gradient's stead come only to those who ask for them.
        place = asked.last_use or asked.definition or lost.question.span
        return elsewhere(lost, "unused", place, label="cut", severity=Severity.NOTE)
    if asked.last_use is not None and _is_made_of_gradients(lost):
        return elsewhere(lost, "unused", asked.last_use, label="cut", help="derivative-zero", severity=Severity.NOTE)
    if asked.stand_in is not None and asked.stand_in_kind == "repeated":
        return elsewhere(lost, "unused", asked.stand_in_span, label="instead", help="repeated")
    if asked.last_use is not None:
        return elsewhere(lost, "unused", asked.last_use, label="last-use")
    place = asked.definition or lost.question.span
    # What hangs on an object of the program's own is a part of it, such as a layer that was never called.
    help = "never-called" if "." in asked.source.name else "default"
    return elsewhere(lost, "unused", place, label="defined" if asked.definition else "cut", help=help)


def _is_made_of_gradients(lost: Lost) -> bool:
    """Whether the target depends on a gradient that was computed inside the recording, as a penalty on one does."""
    scope = lost.recording.scope
    return scope is not None and any(op.is_boundary and scope.id in op.scopes for op in lost.recording.graph.ops)
