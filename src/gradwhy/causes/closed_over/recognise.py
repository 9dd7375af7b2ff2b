"""The value that is differentiated is not the one that the function uses."""

from __future__ import annotations

from gradwhy.diagnose.claims import at_cut, elsewhere
from gradwhy.diagnose.lost import Claim, Lost
from gradwhy.diagnose.wording import text
from gradwhy.flow import Barrier, Label

GOES_BEFORE = ("unknown", "not-watched", "left-framework", "unused")

_KINDS = ("same-object", "same-name")


def recognise(lost: Lost) -> Claim | None:
    """A claim where the function read from outside what it was also given as an argument."""
    region, kind, failure = lost.region, lost.asked.stand_in_kind, lost.question.failure
    if failure is not None and failure.kind == "static-argument":
        labels = (Label(failure.span, text("closed-over/labels/static")),) if failure.span is not None else ()
        if region is None or region.barrier is not Barrier.HOST:
            return elsewhere(lost, "closed-over", lost.question.span, label="passed", help="static", labels=labels)
        return at_cut(lost, "closed-over", label="passed", help="static", labels=labels)
    if region is None or region.barrier is not Barrier.UNWATCHED or kind not in _KINDS:
        return None
    source, stand_in = lost.asked.source, lost.asked.stand_in
    # Where the array is passed in under the name by which it is used, the argument has a name of its own.
    argument = next((name for name in (source.name, *source.aliases) if name != stand_in), source.name)
    values = {"stand_in": stand_in, "source": argument}
    notes = (text("closed-over/notes/same-object", **values),) if kind == "same-object" else ()
    at = lost.question.span
    passed = (Label(at, text("closed-over/labels/argument", source=stand_in or argument)),) if at else ()
    return at_cut(lost, "closed-over", labels=passed, notes=notes, stand_in=stand_in, source=argument)
