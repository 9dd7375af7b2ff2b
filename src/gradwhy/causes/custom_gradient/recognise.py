"""A user-defined gradient gives None or zeros for an input, or drops it."""

from __future__ import annotations

from gradwhy.diagnose.claims import at_cut, elsewhere
from gradwhy.diagnose.lost import Claim, Lost
from gradwhy.diagnose.wording import text
from gradwhy.flow import Barrier, Label, Status

GOES_BEFORE = ("unknown", "unused")


def recognise(lost: Lost) -> Claim | None:
    """A claim where a user-defined gradient is what cuts the path nearest to the source."""
    failure, region = lost.question.failure, lost.region
    if failure is not None and failure.kind == "once-differentiable":
        notes = (text("custom-gradient/notes/once"),)
        return elsewhere(
            lost, "custom-gradient", failure.span or lost.question.span, label="rule", help="once", notes=notes
        )
    if lost.path is None and lost.asked.stand_in_kind == "nondiff":
        notes = (text("custom-gradient/notes/nondiff"),)
        place = lost.asked.stand_in_span
        return elsewhere(lost, "custom-gradient", place, label="nondiff", help="nondiff", notes=notes)
    if region is None or region.barrier is not Barrier.CUSTOM:
        return None
    if failure is not None and failure.kind == "nondiff-argument":
        notes = (text("custom-gradient/notes/nondiff"),)
        return at_cut(lost, "custom-gradient", label="nondiff", help="nondiff", notes=notes)
    label = "zero" if lost.symptom is Status.ZERO else "none"
    used = region.first.op.places[0].span if region.first.op.places else None
    is_elsewhere = used is not None and region.first.edge.span is not None
    labels = (
        (Label(used, text("custom-gradient/labels/used", op=region.first.op.name)),) if used and is_elsewhere else ()
    )
    return at_cut(lost, "custom-gradient", label=label, labels=labels)
