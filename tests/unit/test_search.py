"""The cheapest path against a search that tries every path, on graphs that nobody thought of.

What is compared with is written from the definitions alone: it lists all paths, tells their cuts and costs from the whole
path, and marks what the recording held by walking forward from every watched value.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from random import Random

import pytest
from hypothesis import HealthCheck, assume, event, given, settings
from hypothesis import strategies as st

from gradwhy.diagnose.paths import Path, cheapest, others
from gradwhy.diagnose.recording import Recording
from gradwhy.flow import (
    Asked,
    Barrier,
    FlowGraph,
    Input,
    Op,
    Passage,
    Question,
    Scope,
    ScopeRole,
    Source,
    Status,
    Value,
    ValueKind,
    Watch,
)

Edge = tuple[Op, Input]
Limit = tuple[Barrier, int | None]

RECORDING, OTHER, PAUSE, INNER_PAUSE = 0, 1, 2, 3
MOST_VALUES, MOST_OPS, MOST_PATHS, END_OF_TIME = 7, 6, 4_000, 20

# --- random programs

FLOWING = Input(0)
PASSAGES = [
    *[FLOWING] * 6,
    *(Input(0, Passage.CUT, b) for b in (Barrier.NOT_DIFFERENTIABLE, Barrier.STOPPED, Barrier.WRITE, Barrier.CUSTOM)),
    *(Input(0, Passage.CUT, b) for b in (Barrier.INTEGER, Barrier.INTEGER, Barrier.HOST, Barrier.HOST)),
    *(Input(0, Passage.NOTHING, b) for b in (Barrier.INDEX, Barrier.SAMPLE, Barrier.INTEGER)),
    Input(0, Passage.CUT, Barrier.CONDITION),
    Input(0, Passage.CUT),
    Input(0, Passage.NOTHING),
]
TYPES = [("float32", ValueKind.TENSOR)] * 3 + [
    ("int64", ValueKind.TENSOR),
    ("", ValueKind.HOST),
    ("", ValueKind.TENSOR),
]


@dataclass(frozen=True)
class Program:
    """A random graph, and a question about it."""

    graph: FlowGraph
    question: Question

    @property
    def recording(self) -> Recording:
        return Recording(self.graph, self.question)

    @property
    def sources(self) -> frozenset[int]:
        return frozenset(asked.value for asked in self.question.asked if asked.value is not None)


@st.composite
def programs(draw: st.DrawFn, *, with_loops: bool) -> Program:
    count = draw(st.integers(2, MOST_VALUES))
    types = draw(st.lists(st.sampled_from(TYPES), min_size=count, max_size=count))
    values = tuple(Value(i, kind, dtype, ()) for i, (dtype, kind) in enumerate(types))
    scopes = draw(scopes_of(count))
    size = draw(st.integers(1, MOST_OPS))
    times = sorted(draw(st.lists(st.integers(1, END_OF_TIME), min_size=size, max_size=size)))
    ops = tuple(draw(ops_of(i, time, count, scopes, with_loops=with_loops)) for i, time in enumerate(times))
    sources = draw(st.lists(st.integers(0, count - 1), min_size=1, max_size=3, unique=True))
    targets = draw(st.lists(st.integers(max(0, count - 3), count - 1), min_size=1, max_size=2, unique=True))
    question = Question(
        kind="tape.gradient",
        framework="none",
        places=(),
        time=END_OF_TIME + 1,
        target="loss",
        targets=tuple(targets),
        asked=tuple(Asked(Source(f"w{value}"), value, Status.NONE) for value in sources),
        recording=RECORDING if any(scope.id == RECORDING for scope in scopes) else None,
    )
    return Program(FlowGraph(values, ops, scopes), question)


@st.composite
def scopes_of(draw: st.DrawFn, count: int) -> tuple[Scope, ...]:
    watch = st.builds(Watch, st.integers(0, count - 1), st.integers(0, END_OF_TIME))
    found = []
    for number in (RECORDING, OTHER, PAUSE, INNER_PAUSE):
        if not draw(st.integers(0, 4 if number == RECORDING else 1)):
            continue
        start = draw(st.integers(0, END_OF_TIME // 2))
        end = draw(st.none() | st.integers(start, END_OF_TIME + 1))
        role = ScopeRole.RECORDS if number in (RECORDING, OTHER) else ScopeRole.PAUSES
        watches = tuple(draw(st.lists(watch, max_size=count)))
        reach_back = draw(st.booleans())
        scope = Scope(number, f"scope {number}", role, start, end, None, (), watches, True, None, reach_back)
        if role is ScopeRole.PAUSES:
            scope = replace(scope, pauses=draw(st.sampled_from([(), (), (RECORDING,), (OTHER,)])), watches=())
        found.append(scope)
    return tuple(found)


@st.composite
def ops_of(draw: st.DrawFn, number: int, time: int, count: int, scopes: tuple[Scope, ...], *, with_loops: bool) -> Op:
    """An op between random values; without loops what it makes comes after all that it reads."""
    outputs = draw(st.lists(st.integers(1, count - 1), min_size=1, max_size=2, unique=True))
    latest = count if with_loops else min(outputs)
    edges = draw(
        st.lists(
            st.tuples(st.integers(0, latest - 1), st.sampled_from(PASSAGES), st.booleans()), min_size=1, max_size=3
        )
    )
    around = [s.id for s in scopes if s.start <= time and (s.end is None or time < s.end)]
    if draw(st.integers(0, 5)) == 0:
        # It ran in another thread, or where the scope was put aside.
        around = draw(st.lists(st.sampled_from([s.id for s in scopes] or [9]), unique=True))
    return Op(
        id=number,
        name=f"op {number}",
        time=time,
        inputs=tuple(replace(kind, value=value, is_observed=observed) for value, kind, observed in edges),
        outputs=tuple(outputs),
        places=(),
        scopes=tuple(around),
        is_recorded=draw(st.sampled_from([None] * 6 + [True, False])),
        is_boundary=draw(st.integers(0, 9)) == 0,
        is_user_code=draw(st.booleans()),
    )


# --- the definitions


def held_ops(program: Program) -> set[int]:
    """The ops that the recording held, by walking forward from the watched values."""
    graph, scope = program.graph, recording_scope(program)
    held: set[int] = set()

    def hold(op: Op) -> None:
        if op.id in held:
            return
        held.add(op.id)
        for reader in graph.ops:
            if reader.is_recorded is None and is_recorded_in(program, reader) and reads_of(reader) & set(op.outputs):
                hold(reader)

    for op in graph.ops:
        if op.is_recorded:
            hold(op)
        elif op.is_recorded is None and is_recorded_in(program, op):
            watches = scope.watches if scope else ()
            if any(watch.value in reads_of(op) and watch.time <= op.time for watch in watches):
                hold(op)
    return held


def reads_of(op: Op) -> set[int]:
    """The values that an op reads and may pass a gradient to: all but those that it stops."""
    return {edge.value for edge in op.inputs if edge.barrier is not Barrier.STOPPED}


def recording_scope(program: Program) -> Scope | None:
    return next((s for s in program.graph.scopes if s.id == program.question.recording), None)


def pauses_of(program: Program, op: Op) -> list[Scope]:
    """The scopes that paused the recording while the op ran, from the outermost inward."""
    scopes = {scope.id: scope for scope in program.graph.scopes}
    around = [scopes[number] for number in op.scopes if number in scopes]
    return [s for s in around if s.role is ScopeRole.PAUSES and s.pauses in ((), (program.question.recording,))]


def is_recorded_in(program: Program, op: Op) -> bool:
    scope = recording_scope(program)
    return (scope is None or scope.id in op.scopes) and not pauses_of(program, op)


def own_barrier(edge: Input) -> Barrier | None:
    return None if edge.passage is Passage.FLOWS else edge.barrier or Barrier.NOT_DIFFERENTIABLE


def limit_of(program: Program, held: set[int], op: Op, edge: Input, *, is_source: bool) -> Limit | None:
    """What of the recording's own limits cuts an edge."""
    scope, paused = recording_scope(program), pauses_of(program, op)
    makers = [maker for maker in program.graph.ops if edge.value in maker.outputs]
    has_gradient = any(maker.id in held for maker in makers) or (scope is None and op.id in held)
    if scope is not None:
        seen_until = program.question.time if op.id in held and scope.watches_reach_back else op.time
        has_gradient |= any(watch.value == edge.value and watch.time <= seen_until for watch in scope.watches)
    unwatched = (Barrier.UNWATCHED, scope.id if scope else None) if is_source and not has_gradient else None
    if op.id in held:
        return unwatched
    if scope is not None and scope.id not in op.scopes:
        if op.time < scope.start:
            return Barrier.BEFORE, scope.id
        if scope.end is not None and scope.end <= op.time:
            return Barrier.AFTER, scope.id
        if not paused:
            return Barrier.OTHER_RECORDING, scope.id
    return (Barrier.PAUSED, paused[-1].id) if paused else unwatched


def is_way(program: Program, op: Op, edge: Input) -> bool:
    """Whether a path may use an edge: not where an optimizer wrote, nor what was done before the recording began."""
    scope = recording_scope(program)
    was_before = scope is not None and op.time < scope.start
    is_write = edge.barrier is Barrier.WRITE
    return not (is_write and (op.is_boundary or was_before)) and not (op.is_boundary and was_before)


def paths_from(
    program: Program, source: int, without: frozenset[tuple[int, int]] = frozenset()
) -> Iterator[list[Edge]]:
    """Every path to the source that uses no edge twice, from the source to the target; in a loop it may go round."""
    edges = [
        (op, edge)
        for op in program.graph.ops
        for edge in dict.fromkeys(op.inputs)
        if is_way(program, op, edge) and (op.id, edge.value) not in without
    ]
    todo: list[tuple[int, tuple[int, ...]]] = [(target, ()) for target in program.question.targets]
    tried = 0
    while todo:
        value, taken = todo.pop()
        tried += 1
        assume(tried < MOST_PATHS)
        if value == source:
            yield [edges[number] for number in reversed(taken)]
        further = (n for n, (op, _) in enumerate(edges) if value in op.outputs and n not in taken)
        todo.extend((edges[number][1].value, (*taken, number)) for number in further)


@dataclass(frozen=True)
class Told:
    """A cut as it is told: what cuts, by which scope, and which steps of the path it covers."""

    barrier: Barrier
    scope: int | None
    steps: tuple[int, ...]


def cuts_of(program: Program, held: set[int], path: list[Edge]) -> list[Told]:
    """The cuts of a path: a run under one limit is one, and so is what an op does, together with what follows from it."""
    values = {value.id: value for value in program.graph.values}
    limits = [limit_of(program, held, op, edge, is_source=not i) for i, (op, edge) in enumerate(path)]
    found = []
    for limit, run in groupby(range(len(path)), key=lambda i: limits[i]):
        if limit is not None:
            found.append(Told(*limit, tuple(run)))
    owns = [own_barrier(edge) for _, edge in path]
    run: list[int] = []
    for i, (_, edge) in enumerate(path):
        if owns[i] is None:
            continue
        value = values[edge.value]
        was_integer = owns[i] is Barrier.INTEGER and not value.dtype.startswith("float")
        was_outside = owns[i] is Barrier.HOST and value.kind is ValueKind.HOST and owns[i - 1] is Barrier.HOST
        if run and run[-1] == i - 1 and (was_integer or was_outside):
            run.append(i)
            found[-1] = replace(found[-1], steps=tuple(run))
        else:
            run = [i]
            found.append(Told(owns[i], None, (i,)))  # type: ignore[arg-type]
    return found


def cost_of(program: Program, held: set[int], path: list[Edge]) -> tuple[int, int, int, int, int, int]:
    cuts = cuts_of(program, held, path)
    kinds = {Barrier.INDEX, Barrier.SHAPE, Barrier.CONDITION, Barrier.SAMPLE}
    without_derivative = sum(edge.passage is Passage.NOTHING or edge.barrier in kinds for _, edge in path)
    inferred = sum(not edge.is_observed for _, edge in path)
    meant = sum(own_barrier(edge) is Barrier.STOPPED for _, edge in path)
    # Where a region ends, seen from the source, the value goes on: that op says whose the cut is.
    in_library = sum(not path[cut.steps[-1]][0].is_user_code for cut in cuts)
    return without_derivative, len(cuts), inferred, meant, in_library, len(path)


def told_by(path: Path) -> list[Told]:
    """The regions of a path that was found, as positions in it."""
    positions = {id(passed): number for number, passed in enumerate(path.steps)}
    return [Told(r.barrier, r.scope, tuple(positions[id(s)] for s in r.steps)) for r in path.regions]


def edges_of(path: Path) -> list[Edge]:
    return [(passed.op, passed.edge) for passed in path.steps]


# --- the claims

PROGRAMS = st.one_of(programs(with_loops=False), programs(with_loops=True))
thorough = settings(
    max_examples=400,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
)


@thorough
@given(PROGRAMS)
def test_no_path_is_cheaper_than_the_one_that_is_found(program: Program) -> None:
    held = held_ops(program)
    found = cheapest(program.recording, program.sources)
    for source in program.sources:
        costs = [cost_of(program, held, path) for path in paths_from(program, source)]
        assert (found[source].cost if source in found else None) == min(costs, default=None)
        event(f"{min(len(costs), 3)} paths, the best with {min(costs, default=(0, 0))[1]} cuts")


@thorough
@given(PROGRAMS)
def test_a_path_leads_from_the_source_to_a_target(program: Program) -> None:
    for source, path in cheapest(program.recording, program.sources).items():
        edges = edges_of(path)
        assert all(edge in op.inputs and is_way(program, op, edge) for op, edge in edges)
        for (before, _), (_, edge) in pairwise(edges):
            assert edge.value in before.outputs
        assert edges[0][1].value == source if edges else source in program.question.targets
        assert not edges or set(edges[-1][0].outputs) & set(program.question.targets)


@thorough
@given(programs(with_loops=False))
def test_a_path_without_loops_passes_no_value_twice(program: Program) -> None:
    for path in cheapest(program.recording, program.sources).values():
        passed = [step.edge.value for step in path.steps]
        assert len(set(passed)) == len(passed)


@thorough
@given(PROGRAMS)
def test_the_regions_are_the_cuts_of_the_whole_path(program: Program) -> None:
    held = held_ops(program)
    for path in cheapest(program.recording, program.sources).values():
        expected = cuts_of(program, held, edges_of(path))
        assert sorted(told_by(path), key=repr) == sorted(expected, key=repr)
        starts = [cut.steps[0] for cut in told_by(path)]
        assert starts == sorted(starts)
        event(f"{len(expected)} cuts, the longest of {max((len(c.steps) for c in expected), default=0)} ops")


@thorough
@given(PROGRAMS)
def test_the_recording_held_what_a_watched_value_reached(program: Program) -> None:
    held = held_ops(program)
    assert program.recording.held == held
    event(f"{min(len(held), 3)} ops held")


@thorough
@given(PROGRAMS)
def test_searching_for_many_sources_at_once_finds_what_each_alone_finds(program: Program) -> None:
    alone = {}
    for source in program.sources:
        alone.update(cheapest(program.recording, frozenset({source})))
    assert cheapest(program.recording, program.sources) == alone


@thorough
@given(PROGRAMS, st.integers())
def test_the_order_in_which_a_graph_is_written_down_does_not_matter(program: Program, seed: int) -> None:
    graph, shuffled = program.graph, []
    for part in (graph.values, graph.ops, graph.scopes):
        mixed = list(part)
        Random(seed).shuffle(mixed)
        shuffled.append(tuple(mixed))
    other = Program(FlowGraph(*shuffled), program.question)
    assert cheapest(other.recording, program.sources) == cheapest(program.recording, program.sources)
    for source, path in cheapest(program.recording, program.sources).items():
        assert others(other.recording, source, path) == others(program.recording, source, path)


@thorough
@given(PROGRAMS)
def test_further_paths_are_cut_elsewhere_and_are_the_cheapest_of_those_left(program: Program) -> None:
    held = held_ops(program)
    for source, path in cheapest(program.recording, program.sources).items():
        taken = cut_edges(path)
        for further in others(program.recording, source, path):
            assert further.regions and not taken & cut_edges(further)
            costs = [cost_of(program, held, p) for p in paths_from(program, source, frozenset(taken))]
            assert further.cost == min(costs)
            taken |= cut_edges(further)
        event(f"{len(others(program.recording, source, path))} further paths")


def cut_edges(path: Path) -> set[tuple[int, int]]:
    return {(passed.op.id, passed.edge.value) for passed in path.steps if passed.is_cut}


# --- single programs, for what must hold in each


def chain(*edges: Input | Op, types: tuple[tuple[str, ValueKind], ...] = ()) -> Program:
    """A program whose ops stand in a row, each reading what the one before made; all of it is recorded."""
    ops = []
    for number, given_edge in enumerate(edges):
        op = given_edge if isinstance(given_edge, Op) else Op(0, "op", 5, (given_edge,), (), (), (RECORDING,))
        edge = replace(op.inputs[0], value=number)
        ops.append(replace(op, id=number, inputs=(edge,), outputs=(number + 1,)))
    plain = (("float32", ValueKind.TENSOR),) * (len(edges) + 1 - len(types))
    values = tuple(Value(i, kind, dtype, ()) for i, (dtype, kind) in enumerate((*types, *plain)))
    scope = Scope(RECORDING, "Tape", ScopeRole.RECORDS, 2, 10, None, watches=(Watch(0, 2),))
    asked = (Asked(Source("w"), 0, Status.NONE),)
    question = Question("tape.gradient", "none", (), 20, "loss", (len(edges),), asked, recording=RECORDING)
    return Program(FlowGraph(values, tuple(ops), (scope,)), question)


def cut(barrier: Barrier) -> Input:
    return Input(0, Passage.CUT, barrier)


def at(time: int, edge: Input = FLOWING, *, scopes: tuple[int, ...] = ()) -> Op:
    return Op(0, "op", time, (edge,), (), (), scopes)


def regions(program: Program) -> list[list[str]]:
    """Each region as its barrier, once for each of its steps."""
    path = cheapest(program.recording, program.sources)[0]
    return [[region.barrier.value] * len(region.steps) for region in path.regions]


FLOAT, WHOLE, HOST = ("float32", ValueKind.TENSOR), ("int64", ValueKind.TENSOR), ("", ValueKind.HOST)


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        (chain(at(1), at(1), FLOWING), [["before"] * 2]),
        (chain(FLOWING, at(11), at(12)), [["after"] * 2]),
        (chain(at(1), FLOWING, at(11)), [["before"], ["after"]]),
        (
            chain(cut(Barrier.NOT_DIFFERENTIABLE), cut(Barrier.INTEGER), types=(FLOAT, WHOLE)),
            [["not-differentiable"] * 2],
        ),
        (chain(cut(Barrier.INTEGER), cut(Barrier.INTEGER), types=(FLOAT, WHOLE)), [["integer"] * 2]),
        # What is stopped first and then cast has two cuts: the cast would still be one without the stop.
        (chain(cut(Barrier.STOPPED), cut(Barrier.INTEGER), types=(FLOAT, FLOAT, WHOLE)), [["stopped"], ["integer"]]),
        (chain(cut(Barrier.HOST), cut(Barrier.HOST), types=(FLOAT, HOST)), [["host"] * 2]),
        (
            chain(*[cut(Barrier.HOST)] * 4, types=(FLOAT, HOST, FLOAT, HOST)),
            [["host"] * 2, ["host"] * 2],
        ),
        (chain(cut(Barrier.STOPPED), cut(Barrier.STOPPED)), [["stopped"], ["stopped"]]),
        # What the op itself does is told before when it ran, whichever of the two goes on for longer.
        (
            chain(at(1, cut(Barrier.HOST)), cut(Barrier.HOST), types=(FLOAT, HOST)),
            [["host"] * 2, ["before"]],
        ),
        (chain(at(1, cut(Barrier.HOST)), at(1)), [["host"], ["before"] * 2]),
    ],
)
def test_what_is_one_cut_and_what_is_two(program: Program, expected: list[list[str]]) -> None:
    assert regions(program) == expected


def test_a_source_that_nothing_watches_is_told_before_what_the_op_does() -> None:
    program = chain(cut(Barrier.INTEGER), cut(Barrier.INTEGER), types=(FLOAT, WHOLE))
    (scope,) = program.graph.scopes
    unwatched = replace(program, graph=replace(program.graph, scopes=(replace(scope, watches=()),)))
    assert regions(unwatched) == [["unwatched"], ["integer"] * 2]


def test_a_result_that_is_detached_is_not_called_unwatched() -> None:
    program = chain(FLOWING, cut(Barrier.STOPPED))
    asked = (Asked(Source("h"), 1, Status.NONE),)
    about_result = replace(program, question=replace(program.question, asked=asked))
    (path,) = cheapest(about_result.recording, about_result.sources).values()
    assert [region.barrier for region in path.regions] == [Barrier.STOPPED]


def test_an_optimizers_write_is_no_way_even_inside_the_recording() -> None:
    by_user = chain(cut(Barrier.WRITE), FLOWING)
    assert regions(by_user) == [["write"]]
    update = replace(at(5, cut(Barrier.WRITE), scopes=(RECORDING,)), is_boundary=True)
    assert not cheapest(chain(update, FLOWING).recording, frozenset({0}))


def test_the_gradient_that_a_recording_holds_is_a_way() -> None:
    inner = replace(at(5, scopes=(RECORDING,)), is_boundary=True)
    assert regions(chain(inner, FLOWING)) == []
    assert not cheapest(chain(replace(inner, time=1, scopes=()), FLOWING).recording, frozenset({0}))
