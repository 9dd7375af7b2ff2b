"""Which ops a question's own recording held, and where each passage stands to it."""

from __future__ import annotations

from collections import defaultdict
from functools import cached_property

from gradwhy.flow import (
    CARRIES_NOTHING,
    Barrier,
    FlowGraph,
    Input,
    Op,
    Passage,
    Question,
    Scope,
    ScopeRole,
    Value,
    ValueKind,
)


class Recording:
    """A flow graph as one question's recording sees it.

    An op is held when a watched value reaches it while the recording is on; what is not held was never differentiated,
    whatever its derivative may be.
    """

    def __init__(self, graph: FlowGraph, question: Question) -> None:
        self.graph = graph
        self.question = question
        self.values: dict[int, Value] = {v.id: v for v in graph.values}
        # Of paths that cost the same, the ids decide, in whatever order the graph lists its ops.
        self.ops: dict[int, Op] = {o.id: o for o in sorted(graph.ops, key=lambda o: o.id)}
        self.scopes: dict[int, Scope] = {s.id: s for s in graph.scopes}
        self.makers: dict[int, list[Op]] = defaultdict(list)
        self.readers: dict[int, list[Op]] = defaultdict(list)
        for op in self.ops.values():
            for output in op.outputs:
                self.makers[output].append(op)
            for value in {i.value for i in op.inputs}:
                self.readers[value].append(op)
        self.scope = self.scopes.get(question.recording) if question.recording is not None else None
        self._watched_from = self._first_watches()

    def _first_watches(self) -> dict[int, int]:
        first: dict[int, int] = {}
        for watch in self.scope.watches if self.scope else ():
            first[watch.value] = min(watch.time, first.get(watch.value, watch.time))
        return first

    def is_watched(self, value: int, time: int) -> bool:
        """Whether the recording itself watched `value`, a source or another beginning, at `time`."""
        return value in self._watched_from and self._watched_from[value] <= time

    def _counts_as_watched(self, value: int, time: int) -> bool:
        """Whether a gradient is kept for `value`, which an op that was held read at `time`."""
        if self.scope is None or self._is_made_by_held(value):
            return True
        return self.is_watched(value, self.question.time if self.scope.watches_reach_back else time)

    def _is_made_by_held(self, value: int) -> bool:
        return any(maker.id in self.held for maker in self.makers.get(value, ()))

    def watched_from(self, value: int) -> int | None:
        """When the recording began to watch `value`; None for never."""
        return self._watched_from.get(value)

    def pausing(self, op: Op) -> Scope | None:
        """The innermost scope that paused the recording while `op` ran."""
        for number in reversed(op.scopes):
            scope = self.scopes.get(number)
            if (
                scope
                and scope.role is ScopeRole.PAUSES
                and (not scope.pauses or self.question.recording in scope.pauses)
            ):
                return scope
        return None

    def is_on(self, op: Op) -> bool:
        """Whether the recording was on while `op` ran."""
        if self.pausing(op):
            return False
        return self.scope is None or self.scope.id in op.scopes

    @cached_property
    def held(self) -> frozenset[int]:
        """The ids of the ops that the recording held, marked forward from the watched values."""
        held: set[int] = set()
        reached: set[int] = set()
        # A loop's carry makes a cycle, so that one pass forward may not reach everything.
        while True:
            before = len(held)
            for op in self.ops.values():
                if op.id not in held and self._holds(op, reached):
                    held.add(op.id)
                    reached.update(op.outputs)
            if len(held) == before:
                return frozenset(held)

    def _holds(self, op: Op, reached: set[int]) -> bool:
        if op.is_recorded is not None:
            return op.is_recorded
        if not self.is_on(op):
            return False
        return any(
            i.barrier is not Barrier.STOPPED and (i.value in reached or self.is_watched(i.value, op.time))
            for i in op.inputs
        )

    def scope_barrier(self, op: Op, edge: Input, *, is_end: bool) -> tuple[Barrier, int | None] | None:
        """The barrier that the recording's own limits put into this edge, with the scope to which it is due.

        `is_end` says that a path ends at the edge's value, the source.
        """
        if op.id in self.held:
            # A value that was never watched gets no gradient from an op held for another input's sake.
            if is_end and not self._counts_as_watched(edge.value, op.time):
                return Barrier.UNWATCHED, self.scope.id if self.scope else None
            return None
        paused_by = self.pausing(op)
        if self.scope is not None and self.scope.id not in op.scopes:
            if op.time < self.scope.start:
                return Barrier.BEFORE, self.scope.id
            if self.scope.end is not None and op.time >= self.scope.end:
                return Barrier.AFTER, self.scope.id
            if paused_by is None:
                return Barrier.OTHER_RECORDING, self.scope.id
        if paused_by is not None:
            return Barrier.PAUSED, paused_by.id
        # An op that ran while recording and is not held lacks a watched input. Further on that only follows from a
        # cut nearer to the source; at the source itself it is the cut.
        if is_end and not self.is_watched(edge.value, op.time) and not self._is_made_by_held(edge.value):
            return Barrier.UNWATCHED, self.scope.id if self.scope else None
        return None

    def barriers(
        self, op: Op, edge: Input, *, is_end: bool
    ) -> tuple[Barrier | None, tuple[Barrier, int | None] | None]:
        """The barriers of this edge: the op's own, and the one due to a scope. `is_end`: a path ends at its value."""
        own = None if edge.passage is Passage.FLOWS else edge.barrier or Barrier.NOT_DIFFERENTIABLE
        return own, self.scope_barrier(op, edge, is_end=is_end)

    def is_passable(self, op: Op, edge: Input) -> bool:
        """Whether a path of this question may use the edge at all."""
        start = self.scope.start if self.scope else 0
        if op.is_boundary and (op.time < start or edge.barrier is Barrier.WRITE):
            return False
        # What was written before the recording began is what the value is now; only a write inside it loses a history.
        return not (edge.barrier is Barrier.WRITE and op.time < start)

    def follows(self, edge: Input) -> bool:
        """Whether the edge's own barrier only follows from what its value is already: an integer, a value of the host."""
        value = self.values.get(edge.value)
        if edge.barrier is Barrier.INTEGER:
            return value is None or not value.dtype or not value.is_differentiable
        return edge.barrier is Barrier.HOST and value is not None and value.kind is ValueKind.HOST


def carries_nothing(edge: Input) -> bool:
    """Whether the edge carries no derivative at all, whatever is recorded."""
    return edge.passage is Passage.NOTHING or edge.barrier in CARRIES_NOTHING
