"""The cheapest path from a target back to a source, and the regions in which it is cut."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count

from gradwhy.diagnose.recording import Recording, carries_nothing
from gradwhy.flow import Barrier, Input, Op

Cost = tuple[int, int, int, int, int, int]
"""What is compared, in this order: passages that carry no derivative, cut regions, inferred links, ops that stop
gradients on purpose, regions outside the user's code, length."""

_Open = tuple[Barrier | None, tuple[Barrier, int | None] | None]
"""The barrier of an op itself, and one of a scope, that lie open towards the source: what the next edge may continue."""

_LIMITS = frozenset({Barrier.BEFORE, Barrier.AFTER, Barrier.PAUSED, Barrier.UNWATCHED, Barrier.OTHER_RECORDING})
"""The barriers that are due to when an op ran, and to what was watched."""

_CLOSED: _Open = (None, None)
_FREE: Cost = (0, 0, 0, 0, 0, 0)
_MAX_OTHERS = 3


_State = tuple[int, _Open, bool]
"""A value, what is open behind it, and whether the path ends there."""


@dataclass(frozen=True, slots=True)
class Passed:
    """One edge of a path: the op that read the value, the barrier of the op itself, and the one due to a scope.

    `follows` says that the op's own barrier only follows from what was done to the value before.
    """

    op: Op
    edge: Input
    own: Barrier | None
    limit: tuple[Barrier, int | None] | None
    follows: bool = False

    @property
    def is_cut(self) -> bool:
        return self.own is not None or self.limit is not None

    @property
    def open(self) -> _Open:
        """What the next edge, nearer to the source, may continue."""
        return self.own if self.follows else None, self.limit


@dataclass(frozen=True, slots=True)
class Region:
    """A maximal run of edges cut by one instance of one scope, or one cut that an op itself makes."""

    barrier: Barrier
    scope: int | None
    steps: tuple[Passed, ...]

    @property
    def first(self) -> Passed:
        """The edge nearest to the source."""
        return self.steps[0]

    @property
    def last(self) -> Passed:
        return self.steps[-1]


@dataclass(frozen=True, slots=True)
class Path:
    """The edges from the source, first, to the target, last."""

    steps: tuple[Passed, ...]
    cost: Cost

    @property
    def regions(self) -> tuple[Region, ...]:
        """The cuts of the path, the one nearest to the source first.

        Of two that begin at one edge, what is wrong with the source comes before what the op does, and that before when it ran:
        an op without a derivative has none inside the recording either.
        """
        return tuple(region for _, region in sorted(_regions(self.steps), key=lambda r: (r[0], _rank(r[1]))))


def _rank(region: Region) -> int:
    if region.barrier is Barrier.UNWATCHED:
        return 0
    return 2 if region.barrier in _LIMITS else 1


def _continues(nearer: _Open, passed: Passed) -> tuple[bool, bool]:
    """Whether each barrier of an edge continues a region that lies next to it towards the target.

    Whatever made a value integer is the cut; that the integer then carries nothing on is no second one. A value that
    leaves for the host and comes back is one cut; if it then leaves again, that is another.
    """
    own, limit = nearer
    goes_on = own is Barrier.INTEGER or own is passed.own is Barrier.HOST
    return passed.own is not None and goes_on, passed.limit is not None and limit == passed.limit


def _step_cost(nearer: _Open, passed: Passed) -> Cost:
    own, limit = _continues(nearer, passed)
    opened = int(passed.own is not None and not own) + int(passed.limit is not None and not limit)
    outside = opened if not passed.op.is_user_code else 0
    # What stops a gradient on purpose was likely meant so: of two ways the other one is the surprise.
    meant = int(passed.own is Barrier.STOPPED)
    return (int(carries_nothing(passed.edge)), opened, int(not passed.edge.is_observed), meant, outside, 1)


def cheapest(
    recording: Recording, sources: frozenset[int], *, without: frozenset[tuple[int, int]] = frozenset()
) -> dict[int, Path]:
    """The cheapest path from the question's targets back to each of `sources`; a source without a path is left out.

    `without` holds edges (op id, value id) that a path must not use.
    """
    search = _Search(recording, sources, without)
    for target in recording.question.targets:
        search.offer(_FREE, (target, _CLOSED, False), None)
        if target in sources:
            search.offer(_FREE, (target, _CLOSED, True), None)
    return search.run()


class _Search:
    """Dijkstra from the targets backwards, once for all sources.

    A path may pass through one source on its way to another. Only where it ends does it matter that the recording did
    not watch that source, so an end is a state of its own.
    """

    def __init__(self, recording: Recording, sources: frozenset[int], without: frozenset[tuple[int, int]]) -> None:
        self.recording, self.sources, self.without = recording, sources, without
        self.order = count()
        self.heap: list[tuple[Cost, int, _State]] = []
        self.best: dict[_State, Cost] = {}
        self.came: dict[_State, tuple[_State, Passed] | None] = {}

    def offer(self, cost: Cost, state: _State, came: tuple[_State, Passed] | None) -> None:
        if state not in self.best or cost < self.best[state]:
            self.best[state] = cost
            self.came[state] = came
            heapq.heappush(self.heap, (cost, next(self.order), state))

    def run(self) -> dict[int, Path]:
        found: dict[int, Path] = {}
        while self.heap and len(found) < len(self.sources):
            cost, _, state = heapq.heappop(self.heap)
            if self.best[state] < cost:
                continue
            value, _, is_end = state
            if is_end:
                found.setdefault(value, Path(self.walk(state), cost))
            else:
                self.extend(cost, state)
        return found

    def extend(self, cost: Cost, state: _State) -> None:
        value, nearer, _ = state
        for op in self.recording.makers.get(value, ()):
            for edge in op.inputs:
                if (op.id, edge.value) in self.without or not self.recording.is_passable(op, edge):
                    continue
                for is_end in (False, True) if edge.value in self.sources else (False,):
                    passed = Passed(
                        op, edge, *self.recording.barriers(op, edge, is_end=is_end), self.recording.follows(edge)
                    )
                    total = _sum(cost, _step_cost(nearer, passed))
                    self.offer(total, (edge.value, passed.open, is_end), (state, passed))

    def walk(self, state: _State) -> tuple[Passed, ...]:
        steps: list[Passed] = []
        came = self.came[state]
        while came is not None:
            state, passed = came
            steps.append(passed)
            came = self.came[state]
        return tuple(steps)


def _sum(a: Cost, b: Cost) -> Cost:
    return (a[0] + b[0], a[1] + b[1], a[2] + b[2], a[3] + b[3], a[4] + b[4], a[5] + b[5])


def _regions(steps: tuple[Passed, ...]) -> Iterator[tuple[int, Region]]:
    """The regions of a path with the index at which each begins, seen from the source.

    A run takes the barrier of its edge nearest to the source: there the value stopped carrying a gradient.
    """
    own: list[Passed] = []
    limit: list[Passed] = []
    for index, passed in enumerate(steps):
        following = steps[index + 1] if index + 1 < len(steps) else None
        nearer = following.open if following else _CLOSED
        own_goes_on, limit_goes_on = _continues(nearer, passed)
        if passed.own is not None:
            own.append(passed)
            if not own_goes_on:
                yield index + 1 - len(own), Region(own[0].own or passed.own, None, tuple(own))
                own = []
        if passed.limit is not None:
            limit.append(passed)
            if not limit_goes_on:
                yield index + 1 - len(limit), Region(*passed.limit, tuple(limit))
                limit = []


def others(recording: Recording, source: int, path: Path) -> tuple[Path, ...]:
    """Further cut paths, each without the edges at which the ones before it are cut, the cheapest first."""
    found: list[Path] = []
    without = _cut_edges(path)
    while len(found) < _MAX_OTHERS and without:
        other = cheapest(recording, frozenset({source}), without=frozenset(without)).get(source)
        if other is None or not other.regions:
            break
        found.append(other)
        without |= _cut_edges(other)
    return tuple(found)


def _cut_edges(path: Path) -> set[tuple[int, int]]:
    return {(p.op.id, p.edge.value) for p in path.steps if p.is_cut}
