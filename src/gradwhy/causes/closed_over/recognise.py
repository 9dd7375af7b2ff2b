"""The value that is differentiated is not the one that the function uses."""

from __future__ import annotations

from gradwhy.diagnose.claims import at_cut
from gradwhy.diagnose.lost import Claim, Lost
from gradwhy.diagnose.wording import text
from gradwhy.flow import Barrier, Label

GOES_BEFORE = ("unknown", "not-watched")

_KINDS = ("same-object", "same-name")


def recognise(lost: Lost) -> Claim | None:
    """A claim where the function read from outside what it was also given as an argument."""
    region, kind = lost.region, lost.asked.stand_in_kind
    if region is None or region.barrier is not Barrier.UNWATCHED or kind not in _KINDS:
        return None
    values = {"stand_in": lost.asked.stand_in, "source": lost.asked.source.name}
    notes = (text("closed-over/notes/same-object", **values),) if kind == "same-object" else ()
    passed = (Label(lost.question.span, text("closed-over/labels/argument")),) if lost.question.span else ()
    return at_cut(lost, "closed-over", labels=passed, notes=notes)
