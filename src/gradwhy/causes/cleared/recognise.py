"""The gradients were cleared before anything used them."""

from __future__ import annotations

from gradwhy.diagnose.claims import elsewhere
from gradwhy.diagnose.lost import Claim, Lost
from gradwhy.diagnose.wording import text
from gradwhy.flow import Label, Severity, SourceFact

GOES_BEFORE = ("unknown", "unused", "not-watched", "rebound", "frozen", "non-leaf", "unregistered")


def recognise(lost: Lost) -> Claim | None:
    """A claim where a gradient came and was taken away before the step, or the read, that asks for it."""
    cleared, asked_at = lost.asked.cleared, lost.question.span
    if cleared is None:
        return None
    if lost.has(SourceFact.HELD_BY_OPTIMIZER):
        return elsewhere(lost, "cleared", cleared, help="order")
    labels = (Label(asked_at, text("cleared/labels/used")),) if asked_at is not None else ()
    # Such a read may as well show that there is nothing any more.
    return elsewhere(lost, "cleared", cleared, help="read-first", labels=labels, severity=Severity.WARNING)
