"""The source, or a value on the path, is integer, bool or string."""

from __future__ import annotations

from gradwhy.diagnose.claims import at_cut, elsewhere
from gradwhy.diagnose.lost import Claim, Lost
from gradwhy.flow import Barrier, SourceFact

GOES_BEFORE = ("unknown", "unused", "not-watched", "non-differentiable-op", "saturated")


def recognise(lost: Lost) -> Claim | None:
    """A claim where the source itself is integer, or a cast to integer is what cuts the path."""
    region = lost.region
    if lost.has(SourceFact.INTEGER):
        is_index = region is not None and region.barrier is Barrier.INDEX
        help = "tokens" if is_index else "source"
        if region is None:
            help = "counter" if _is_counter(lost) else help
            place = lost.asked.definition or lost.question.span
            return elsewhere(lost, "integer-dtype", place, label="source", help=help)
        return at_cut(lost, "integer-dtype", label="source", help=help, dtype=_dtype(lost))
    if region is not None and region.barrier is Barrier.INTEGER:
        return at_cut(lost, "integer-dtype", help="cast")
    return None


def _is_counter(lost: Lost) -> bool:
    """Whether the source is a whole number, or a text, among the parameters that are differentiated together."""
    source = lost.asked.source
    is_in_tree = len(lost.question.asked) > 1 and ("[" in source.name or "." in source.name)
    is_number = source.shape == () or not lost.asked.dtype.startswith(("int", "uint", "bool"))
    return lost.question.framework == "jax" and is_in_tree and is_number and bool(lost.asked.dtype)


def _dtype(lost: Lost) -> str | None:
    value = lost.recording.values.get(lost.asked.value) if lost.asked.value is not None else None
    return lost.asked.dtype or (value.dtype if value else "") or None
