"""A parameter that the model or the optimizer does not know."""

from __future__ import annotations

from gradwhy.diagnose.claims import elsewhere
from gradwhy.diagnose.lost import Claim, Lost
from gradwhy.flow import Severity, SourceFact

WARNING = Severity.WARNING
GOES_BEFORE = ("unknown", "unused", "frozen", "not-watched")


def recognise(lost: Lost) -> Claim | None:
    """A claim where the model or the optimizer was seen not to hold a parameter that the target uses."""
    if lost.has(SourceFact.UNKNOWN_TO_OPTIMIZER):
        return elsewhere(lost, "unregistered", lost.question.span, label="optimizer-older", help="optimizer")
    if lost.has(SourceFact.MADE_IN_CALL):
        return elsewhere(
            lost, "unregistered", lost.asked.definition, label="made-in-call", help="create-once", severity=WARNING
        )
    if lost.has(SourceFact.UNKNOWN_TO_MODEL):
        place = lost.asked.last_use or lost.asked.definition
        return elsewhere(lost, "unregistered", place, label="not-tracked", help="track", severity=WARNING)
    return None
