"""The source takes no part in the target."""

from __future__ import annotations

from gradwhy.diagnose.claims import elsewhere
from gradwhy.diagnose.lost import Claim, Lost
from gradwhy.flow import Severity, SourceFact, Status

GOES_BEFORE = ("unknown",)


def recognise(lost: Lost) -> Claim | None:
    """A claim where the target's whole ancestry is known and the source is not in it."""
    asked = lost.asked
    if lost.path is not None and _is_zero_by_nature(lost):
        place = asked.last_use or lost.question.span
        return elsewhere(lost, "unused", place, label="cut", help="derivative-zero", severity=Severity.NOTE)
    if lost.path is not None or not lost.is_complete:
        return None
    if lost.question.order > 1:
        # What does not depend on a source has a derivative of zero, and that is the right answer.
        place = asked.last_use or lost.question.span
        return elsewhere(lost, "unused", place, label="cut", help="derivative-zero", severity=Severity.NOTE)
    if lost.symptom is Status.ZERO:
        # Zeros in a missing gradient's stead come only to those who ask for them.
        if asked.last_use is None and asked.unreached is not None:
            return elsewhere(lost, "unused", asked.unreached, label="skipped", help="skipped", severity=Severity.NOTE)
        place = asked.last_use or asked.definition or lost.question.span
        return elsewhere(lost, "unused", place, label="cut", severity=Severity.NOTE)
    if asked.last_use is not None and _is_made_of_gradients(lost):
        return elsewhere(lost, "unused", asked.last_use, label="cut", help="derivative-zero", severity=Severity.NOTE)
    if asked.stand_in is not None and asked.stand_in_kind == "repeated":
        return elsewhere(lost, "unused", asked.stand_in_span, label="instead", help="repeated")
    severity = Severity.NOTE if _is_held_in_vain(lost) else None
    if asked.dropped is not None:
        ends = tuple(span for span in (asked.last_use, lost.question.target_span) if span not in (None, asked.dropped))
        return elsewhere(lost, "unused", asked.dropped, label="dropped", help="last-use", severity=severity, also=ends)
    if asked.last_use is not None:
        return elsewhere(lost, "unused", asked.last_use, label="last-use", severity=severity)
    if asked.beside is not None:
        made = tuple(span for span in (asked.definition, lost.question.target_span) if span is not None)
        return elsewhere(
            lost, "unused", asked.beside, label="beside", help="never-called", severity=severity, also=made
        )
    place = asked.definition or lost.question.span
    # What hangs on an object of the program's own is a part of it, such as a layer that was never called.
    help = "never-called" if "." in asked.source.name else "default"
    label = "defined" if asked.definition else "cut"
    target = lost.question.target_span
    also = (target,) if target is not None and target != place else ()
    return elsewhere(lost, "unused", place, label=label, help=help, severity=severity, also=also)


def _is_held_in_vain(lost: Lost) -> bool:
    """Whether only an optimizer holds the source, among others that train.

    Optimizers are often given more than a loss needs: a model's pooler, a head for another task.
    """
    is_required = lost.has(SourceFact.REQUIRED) or not lost.has(SourceFact.HELD_BY_OPTIMIZER)
    return not is_required and any(other.status is Status.OK for other in lost.question.asked)


def _is_zero_by_nature(lost: Lost) -> bool:
    """Whether the target depends on the source through a gradient only, all of it recorded, and still none came back.

    The derivative of a gradient with respect to a last bias is none: the gradient does not depend on it.
    """
    steps = lost.path.steps if lost.path is not None else ()
    return lost.symptom is Status.NONE and not lost.regions and any(passed.op.is_boundary for passed in steps)


def _is_made_of_gradients(lost: Lost) -> bool:
    """Whether the target depends on a gradient that was computed inside the recording, as a penalty on one does."""
    scope = lost.recording.scope
    return scope is not None and any(op.is_boundary and scope.id in op.scopes for op in lost.recording.graph.ops)
