"""A parameter that the model or the optimizer does not know."""

from __future__ import annotations

from gradwhy.diagnose.claims import elsewhere
from gradwhy.diagnose.lost import Claim, Lost
from gradwhy.diagnose.wording import text
from gradwhy.flow import Severity, SourceFact, Status

WARNING = Severity.WARNING
GOES_BEFORE = ("unknown", "unused", "frozen", "not-watched", "rebound")


def recognise(lost: Lost) -> Claim | None:
    """A claim where the model or the optimizer was seen not to hold a parameter that the target uses."""
    if lost.has(SourceFact.UNKNOWN_TO_OPTIMIZER):
        return elsewhere(lost, "unregistered", lost.question.span, label="optimizer-older", help="optimizer")
    if lost.has(SourceFact.MADE_IN_CALL):
        return elsewhere(
            lost, "unregistered", lost.asked.definition, label="made-in-call", help="create-once", severity=WARNING
        )
    if lost.has(SourceFact.UNKNOWN_TO_MODEL):
        if lost.symptom in (Status.UNHELD, Status.ERROR):
            # The program's own layers: where they were made is where they are to be kept otherwise.
            exists = (text("unregistered/notes/gradient-exists"),) if lost.symptom is Status.UNHELD else ()
            place = lost.asked.definition or lost.question.span
            return elsewhere(lost, "unregistered", place, label="not-tracked", help="track", notes=exists)
        place = lost.asked.last_use or lost.asked.definition or lost.question.span
        return elsewhere(lost, "unregistered", place, label="not-tracked", help="track", severity=WARNING)
    if lost.asked.stand_in_kind == "replaced":
        place, stand_in = lost.asked.stand_in_span, lost.asked.stand_in
        return elsewhere(lost, "unregistered", place, label="replaced", help="optimizer", source=stand_in)
    return None
