"""The framework has no gradient for an op on the path."""

from __future__ import annotations

from gradwhy.diagnose.claims import at_cut, elsewhere
from gradwhy.diagnose.lost import Claim, Lost
from gradwhy.flow import Barrier, Span

GOES_BEFORE = ("unknown", "not-watched", "unused")

_NAMES = {"tensorflow": "TensorFlow", "torch": "PyTorch", "jax": "JAX"}


def recognise(lost: Lost) -> Claim | None:
    """A claim where the path reaches an op without a registered gradient."""
    name = _NAMES.get(lost.question.framework, lost.question.framework)
    region = lost.region
    if region is not None and region.barrier is Barrier.NOT_REGISTERED:
        return at_cut(lost, "no-gradient-registered", framework_name=name)
    failure = lost.question.failure
    if failure is not None and failure.kind == "no-gradient-registered":
        place = _place_of(lost, failure.op) or lost.question.span
        return elsewhere(lost, "no-gradient-registered", place, framework_name=name)
    return None


def _place_of(lost: Lost, name: str | None) -> Span | None:
    """Where the last op of the name that the framework complains of ran, on whichever way to the target."""
    places = [op.places[0].span for op in lost.recording.graph.ops if op.name == name and op.places]
    return places[-1] if places else None
