"""How much of the past is kept: a value that outlives its question is condensed to what may still be asked."""

from __future__ import annotations

import copy
import heapq
from collections.abc import Iterator
from itertools import count

from gradwhy.backends.torch.trail import Call, Edge, Record
from gradwhy.flow import Unrecorded

MOST_BETWEEN_QUESTIONS = 8_000
"""A program that asks nothing for that many ops is taken as if it had asked."""
MOST_VISITED = 4_000
MOST_ENDS = 64


class History:
    """The values of the last two stretches between questions.

    What came before is condensed: of the ops between such a value and the values it came from, only those are kept at
    which a gradient was lost, and the one next to the source.
    """

    def __init__(self, clock: Iterator[int]) -> None:
        self._clock = clock
        self._young: list[Record] = []
        self._older: list[Record] = []
        self._young_since = 0
        self._older_since = 0
        self.has_overflown = False
        """Whether more ran since the question before the last than is kept one by one."""

    def add(self, record: Record) -> None:
        """A value was made."""
        self._young.append(record)
        if len(self._young) >= MOST_BETWEEN_QUESTIONS:
            self._move_on()
            self.has_overflown = True

    def forget(self) -> None:
        """Begin anew: what is known of the past stays as it is."""
        self._young, self._older = [], []

    def records(self) -> Iterator[Record]:
        """The values of the last stretches, in the order in which they were made."""
        yield from self._older
        yield from self._young

    def advance(self) -> None:
        """A question was answered."""
        self._move_on()
        self.has_overflown = False

    def _move_on(self) -> None:
        for record in self._older:
            if record.is_alive:
                condense(record)
        limit = self._older_since
        self._condense_before(limit, [record for record in self._young if record.is_alive])
        self._older, self._young = self._young, []
        self._older_since, self._young_since = self._young_since, next(self._clock)

    def _condense_before(self, limit: int, records: list[Record]) -> None:
        """Condense the values made before `limit` that `records` were made from.

        A state that is carried from step to step would be the end of an endless chain.
        """
        todo = records
        seen: set[int] = set()
        while todo:
            record = todo.pop()
            if id(record) in seen or record.call is None:
                continue
            seen.add(id(record))
            if record.call.time < limit:
                condense(record)
            else:
                todo.extend(edge[1] for edge in record.call.inputs)


def condense(record: Record) -> None:
    """Replace what lies behind a value by the values it came from and the ops at which a gradient was lost."""
    call = record.call
    if call is None or call.is_condensed or not call.inputs:
        return
    ends, is_whole = _ends(record)
    kept = copy.copy(call)
    kept.is_condensed = True
    kept.inputs = tuple(_chain(path) for path in ends)
    if not is_whole:
        kept.inputs += ((0, _dropped(), False, False),)
    record.call = kept


_Step = tuple["Record", "Edge"]


def _ends(record: Record) -> tuple[list[list[_Step]], bool]:
    """The paths, each from `record` to a value that is alive or begins, that lose a gradient least often."""
    order = count()
    waiting: list[tuple[int, int, int, Record, tuple[_Step, ...]]] = [(0, 0, next(order), record, ())]
    seen: set[int] = set()
    found: list[list[_Step]] = []
    while waiting:
        lost, length, _, current, path = heapq.heappop(waiting)
        if id(current) in seen:
            continue
        seen.add(id(current))
        call = current.call
        if path and (current.is_alive or call is None or not call.inputs):
            # A constant that is gone can be asked for no more.
            if current.is_alive or current.unrecorded is not None:
                found.append(list(path))
            continue
        if len(seen) > MOST_VISITED or len(found) >= MOST_ENDS:
            return found, False
        for edge in call.inputs if call else ():
            is_lost = edge[3] or (edge[2] and not call.is_recorded)  # type: ignore[union-attr]
            step = (current, edge)
            heapq.heappush(waiting, (lost + is_lost, length + 1, next(order), edge[1], _shortened(path, step)))
    return found, True


def _shortened(path: tuple[_Step, ...], step: _Step) -> tuple[_Step, ...]:
    """`path` with a further step; the step before it is left out where nothing was lost."""
    if len(path) > 1 and not _tells(path[-1]):
        path = path[:-1]
    return (*path, step)


def _tells(step: _Step) -> bool:
    record, edge = step
    return edge[3] or bool(record.call and edge[2] and not record.call.is_recorded)


def _chain(path: list[_Step]) -> Edge:
    """The edge that leads from the condensed value along what is left of a path."""
    (_, first), *rest = path
    reached = path[-1][1][1]
    for record, edge in reversed(rest):
        reached = _link(record, (edge[0], reached, edge[2], edge[3]))
    return (first[0], reached, first[2], first[3])


def _link(record: Record, edge: Edge) -> Record:
    """A stand-in for `record` that has one input only."""
    link = copy.copy(record)
    call: Call = copy.copy(record.call)  # type: ignore[assignment]
    call.inputs = (edge,)
    call.is_condensed = True
    link.call = call
    link.is_alive = False
    link.memory = None
    return link


def _dropped() -> Record:
    dropped = Record(None, None)
    dropped.unrecorded = Unrecorded.DROPPED
    return dropped
