"""What came back from a question to JAX, and how it is told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from types import FrameType
from typing import Any

from gradwhy.backends.jax import definitions, describe, failures, ops, reading, turns
from gradwhy.backends.jax.asking import Asking
from gradwhy.backends.jax.closed_over import StandIns
from gradwhy.backends.jax.drawing import Drawing, Turn
from gradwhy.backends.jax.record import Frames, Stretch, ValueRecord, arguments_behind, frames_of_stack
from gradwhy.backends.jax.unasked import Unasked
from gradwhy.flow import (
    Asked,
    Barrier,
    Failure,
    FlowGraph,
    Passage,
    Question,
    Source,
    SourceFact,
    Span,
    Status,
    ValueKind,
)
from gradwhy.source import names, positions

_EXITS: dict[str, ops.Edge] = {
    "left-framework": (Passage.CUT, Barrier.HOST),
    "static-argument": (Passage.CUT, Barrier.HOST),
    "no-gradient-registered": (Passage.CUT, Barrier.NOT_REGISTERED),
    "nondiff-argument": (Passage.CUT, Barrier.CUSTOM),
}
"""What an exit from JAX, by its kind, is in the flow graph."""


class Telling:
    """The answer to a question, told as far as somebody wants to know."""

    def __init__(
        self,
        asking: Asking,
        gradients: Sequence[ValueRecord | None],
        frame: FrameType | None,
        failure: Failure | None = None,
    ) -> None:
        self._asking = asking
        self._gradients = gradients
        self._frame = frame
        self._failure = failure
        self._stretch = asking.stretch or Stretch(0, asking.manner.kind, 0, asking.frames)
        self._statuses: tuple[Status, ...] = ()

    def statuses(self, gradients: Sequence[Any]) -> tuple[Status, ...]:
        """What came back for each source, in the order of the leaves."""
        count = len(self._asking.values())
        if self._failure is not None:
            self._statuses = tuple(Status.ERROR if self._is_concerned(i) else Status.OK for i in range(count))
        elif not count or len(gradients) % count:
            return ()
        else:
            found = [turns.status_of(g) for g in gradients]
            self._statuses = tuple(self._status(i, found[i::count]) for i in range(count))
            self._statuses += (Status.NONE,) * len(self._asking.unasked)
        return self._statuses

    def build(self, with_graph: bool) -> tuple[Question, FlowGraph | None]:
        """The question in the user's words, with the graph that explains it if that is wanted."""
        asking = self._asking
        index = describe.index_of(positions.live_user_frames(self._frame))
        sources = [describe.source(a, p, index) for a, p in zip(asking.values(), self._paths, strict=True)]
        sources += [describe.source(u.record.value if u.record else None, u.path, index) for u in asking.unasked]
        made_at = [p for r in asking.targets if r.maker for p in positions.places_of(r.maker.frames[:1])]
        question = Question(
            kind=asking.manner.kind,
            framework="jax",
            places=positions.places_of(asking.frames),
            time=self._stretch.end or self._stretch.start,
            target=describe.name_of(asking.fun),
            targets=(),
            asked=tuple(Asked(s, None, status) for s, status in zip(sources, self._statuses, strict=True)),
            failure=self._failure,
            target_span=made_at[0].span if made_at else None,
        )
        return self._explained(question, sources, index) if with_graph else (question, None)

    def _explained(
        self, question: Question, sources: Sequence[Source], index: names.Names
    ) -> tuple[Question, FlowGraph]:
        asking, drawing, targets = self._asking, self._drawing, tuple(self._targets)
        stand_ins = StandIns(drawing, asking, set(targets), index)
        # What a source is made of may have to be drawn before the graph is.
        count = len(asking.values())
        asked = tuple(self._asked(i, source, stand_ins) for i, source in enumerate(sources[:count]))
        asked += tuple(map(self._left_out, asking.unasked, sources[count:]))
        is_inside = asking.left is not None and asking.left.value is not None and not self._is_followed
        if not targets or is_inside:
            # The exception came before there was a target, or in a body that was being compiled by itself.
            drawing.is_complete = False
        watched = [drawing.number(t) for t in asking.tracers if t is not None]
        graph = drawing.graph(watched, self._turns())
        order = 2 if asking.manner.is_second else drawing.order
        whole = replace(question, targets=targets, asked=asked, recording=self._stretch.number, order=order)
        return whole, graph

    def uses(self, value: ValueRecord) -> bool:
        """Whether the target was made of a value, whatever the question asks about."""
        return self._reaches(value, flowing=False)

    def _left_out(self, one: Unasked, source: Source) -> Asked:
        """An array that the question leaves out, and that the program looks for in the answer."""
        reader = self._asking.frames[0]
        if one.fact is SourceFact.FROZEN:
            made = reading.parted_at(reader)
        else:
            names = (source.name, *source.aliases)
            made = next((m for n in names if (m := definitions.made_at(n, reader, None)) is not None), None)
        value = self._drawing.number(one.record) if one.record is not None else None
        return Asked(source, value, Status.NONE, frozenset({one.fact}), made)

    def _status(self, source: int, found: Sequence[Status | None]) -> Status:
        """One answer of several: a Jacobian has a gradient for every output."""
        if Status.NAN in found:
            return Status.NAN
        if Status.OK in found:
            return Status.OK
        # The program may have pulled back a zero: only a path that is cut makes that a missing gradient.
        if Status.ZERO in found and not self._asking.manner.is_pulled:
            return Status.ZERO
        return Status.OK if self._flows(source) else Status.ZERO

    def _flows(self, source: int) -> bool:
        """Whether the derivative of a source reaches the target by what was recorded, whatever its numbers are."""
        tracer = self._asking.tracers[source]
        if tracer is None:
            # An integer that the program allows itself to ask about has no gradient by its nature.
            return True
        if not self._reaches(tracer):
            return False
        gradient = self._gradients[source] if source < len(self._gradients) else None
        return gradient is None or not self._backward.is_known or self._backward.depends(gradient)

    def _is_concerned(self, source: int) -> bool:
        """Whether the exception that came instead of an answer has to do with a source."""
        assert self._failure is not None
        if self._failure.kind == "integer-dtype":
            return not ops.is_differentiable(describe.dtype(self._asking.values()[source]))
        left = self._asking.left
        tracer = self._asking.tracers[source] if self._asking.tracers else None
        if left is None or left.value is None or tracer is None:
            return True
        if left.is_gone:
            known = arguments_behind(left.value)
            return not known or source in known
        return not self._is_followed or self._reaches(tracer, flowing=False)

    @cached_property
    def _is_followed(self) -> bool:
        """Whether what was recorded leads from the sources to the value that left."""
        left = self._asking.left
        return left is not None and not left.is_gone and failures.is_made_of_sources(left, self._asking)

    def _reaches(self, source: ValueRecord, *, flowing: bool = True) -> bool:
        """Whether a path leads from a value to the target."""
        drawing, targets = self._drawing, set(self._targets)
        return bool(targets & drawing.reached([drawing.number(source)], flowing=flowing))

    @cached_property
    def _drawing(self) -> Drawing:
        asking = self._asking
        drawing = Drawing(
            asking.recorder, self._stretch, asking.tag, asking.leaves, is_forward=asking.manner.is_forward
        )
        for target in asking.targets:
            drawing.number(target)
        return drawing

    @cached_property
    def _targets(self) -> list[int]:
        """The values asked about, in the drawing; of a value that could not leave, what the host would have had of it."""
        left = self._asking.left
        if left is None or self._failure is None or left.is_gone:
            return [self._drawing.number(t) for t in self._asking.targets]
        if left.value is None:
            return []
        value = self._drawing.number(left.value)
        out = self._drawing.new_value(left.value.aval, kind=ValueKind.HOST)
        self._drawing.add(left.what, (value, _EXITS[left.kind]), out, self._stretch.end or 0, frames=left.frames)
        return [out]

    @cached_property
    def _backward(self) -> turns.Backward:
        return turns.Backward(self._asking.seeds, self._asking.passing.ops)

    def _turns(self) -> list[Turn]:
        found: list[Turn] = []
        if self._asking.manner.is_second:
            return found
        for i, status in enumerate(self._statuses[: len(self._asking.values())]):
            gradient = self._gradients[i] if i < len(self._gradients) else None
            tracer = self._asking.tracers[i] if self._asking.tracers else None
            if status in (Status.ZERO, Status.NAN) and tracer is not None:
                source = self._drawing.number(tracer)
                found += turns.turns(self._drawing, self._backward, gradient, status, source, set(self._targets))
        return found

    def _asked(self, i: int, source: Source, stand_ins: StandIns) -> Asked:
        asking = self._asking
        tracer = asking.tracers[i] if asking.tracers else None
        is_lost = self._statuses[i] is not Status.OK
        stand_in = stand_ins.of(i, source) if tracer and is_lost else None
        last_use = positions.places_of(self._last_use(tracer)[:1]) if tracer is not None and is_lost else ()
        if asking.left is not None and asking.left.is_gone:
            last_use = positions.places_of(asking.left.frames[:1])
        keys = definitions.keys_of(path := (self._paths[i] if i < len(self._paths) else source.name))
        is_read = last_use or (tracer is not None and tracer.read_at is not None)
        function = getattr(describe.users_function(asking.fun), "__code__", None)
        unreached = definitions.unreached(function, *keys) if is_lost and not is_read and function and path else None
        return Asked(
            source=source,
            value=stand_in.value if stand_in and stand_in.value is not None else self._value(i),
            status=self._statuses[i],
            facts=self._facts(i),
            definition=self._definition(source) if is_lost and asking.frames else None,
            last_use=last_use[0].span if last_use else None,
            unreached=unreached,
            stand_in=stand_in.name if stand_in else None,
            stand_in_span=stand_in.span if stand_in else None,
            stand_in_kind=stand_in.kind if stand_in else None,
            dtype=describe.dtype(asking.values()[i]),
        )

    def _definition(self, source: Source) -> Span | None:
        """Where the program makes a source: the expression in the dict or the class that holds it, or a statement."""
        reader = self._asking.frames[0]
        span = positions.span_of(*reader)
        exact = definitions.made_at(source.name, reader, span.line if span else None)
        made = describe.definition(source.name, reader) if exact is None else None
        return exact or (made.statement if made else None)

    @cached_property
    def _paths(self) -> list[str]:
        asking = self._asking
        return asking.paths or describe.leaf_paths(asking.fun, asking.args, asking.argnums)

    def _value(self, i: int) -> int | None:
        """The source in the drawing: what JAX put in the argument's place, or the argument where it put nothing."""
        leaf, tracer = (records[i] if records else None for records in (self._asking.leaves, self._asking.tracers))
        record = tracer or leaf
        return None if record is None else self._drawing.number(record)

    def _last_use(self, tracer: ValueRecord) -> Frames:
        """Where the last op stands that was made of a source, though the target was not."""
        drawing = self._drawing
        reached = drawing.reached([drawing.number(tracer)], flowing=False)
        readers = [d for d in drawing.drafts if any(v in reached for v, _ in d.inputs)]
        frames = max(readers, key=lambda d: (d.time, d.order)).frames if readers else frames_of_stack(tracer.read_at)
        return frames[definitions.handed_out(frames) :]

    def _facts(self, i: int) -> frozenset[SourceFact]:
        is_integer = not ops.is_differentiable(describe.dtype(self._asking.values()[i]))
        return frozenset({SourceFact.INTEGER}) if is_integer else frozenset()
