"""The value went through NumPy, Python or another library and came back as a constant."""

from __future__ import annotations

from gradwhy.diagnose.claims import at_cut, elsewhere
from gradwhy.diagnose.lost import Claim, Lost, span_of
from gradwhy.diagnose.wording import text
from gradwhy.flow import Barrier, Label

GOES_BEFORE = ("unknown", "unused")

_HELP = {
    "predict": "predict",
    "numpy_function": "numpy-function",
    "NumpyFunction": "numpy-function",
    "PyFunc": "numpy-function",
    "EagerPyFunc": "py-function",
    "py_function": "py-function",
}


def recognise(lost: Lost) -> Claim | None:
    """A claim where the value nearest to the source left the framework."""
    failure = lost.question.failure
    region = lost.region
    if region is None and failure is not None and failure.kind == "left-framework":
        return elsewhere(lost, "left-framework", failure.span or lost.question.span)
    if lost.path is None and lost.asked.stand_in_kind == "to-host":
        place, name = lost.asked.stand_in_span, lost.asked.source.name
        op = lost.asked.stand_in
        return elsewhere(lost, "left-framework", place, label="number", help="number", name=name, op=op)
    if region is None or region.barrier is not Barrier.HOST:
        return None
    inferred = any(not p.edge.is_observed for p in region.steps)
    notes = (text("left-framework/notes/likely"),) if inferred else ()
    back = span_of(region.last)
    labels = (Label(back, text("left-framework/labels/back")),) if back and len(region.steps) > 1 else ()
    help = _HELP.get(region.first.op.name.rpartition(".")[2], "default")
    return at_cut(lost, "left-framework", help=help, notes=notes, labels=labels)
