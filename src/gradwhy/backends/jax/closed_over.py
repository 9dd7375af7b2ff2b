"""What the function used in an argument's stead: the array itself, or a value made of it before it was called."""

from __future__ import annotations

from dataclasses import dataclass

from gradwhy.backends.jax import describe
from gradwhy.backends.jax.asking import Asking
from gradwhy.backends.jax.drawing import Drawing
from gradwhy.backends.jax.record import ValueRecord
from gradwhy.flow import Source, Span
from gradwhy.source import names


@dataclass(frozen=True, slots=True)
class StandIn:
    """What was used, by the user's name for it, and where it was put in the argument's stead."""

    name: str
    span: Span | None


class StandIns:
    """Looks for them in the drawing of one question, and draws what it finds."""

    def __init__(self, drawing: Drawing, asking: Asking, targets: set[int], index: names.Names) -> None:
        self._drawing = drawing
        self._asking = asking
        self._targets = targets
        self._index = index

    def of(self, i: int, source: Source) -> StandIn | None:
        """What stands in for the source number `i`; None where the function used the argument, or nothing is known."""
        drawing, tracer = self._drawing, self._asking.tracers[i]
        assert tracer is not None
        if self._targets & drawing.reached([drawing.number(tracer)], flowing=False):
            return None
        array = drawing.number(self._asking.leaves[i])
        if self._targets & drawing.reached([array], flowing=False):
            return self._read_itself(array, source)
        return next((found for c in drawing.constants if (found := self._made_before(c, array, source))), None)

    def _read_itself(self, array: int, source: Source) -> StandIn:
        reader = next(d for d in self._drawing.drafts if any(v == array for v, _ in d.inputs))
        places = self._drawing.places(reader.frames)
        return StandIn(source.name, places[0].span if places else None)

    def _made_before(self, constant: ValueRecord, array: int, source: Source) -> StandIn | None:
        """A value that entered the function as a constant, if the source says that it was made of the array."""
        value = constant.ref() if constant.ref is not None else None
        if value is None or not constant.read_at:
            return None
        name, aliases = self._index.of(value)
        for known in (name, *aliases):
            for reader in (constant.read_at[0], *self._asking.frames[:1]):
                made = describe.definition(known, reader) if known else None
                if made is not None and describe.is_made_of(made, (source.name, *source.aliases), reader):
                    self._drawing.infer(made.what, array, self._drawing.number(constant), made.place)
                    return StandIn(name, made.statement)
        return None
