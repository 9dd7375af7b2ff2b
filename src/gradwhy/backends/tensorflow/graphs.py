"""Reads the graphs that TensorFlow built: bodies of functions, branches and loops, looked into from a call."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from gradwhy.backends.tensorflow import py_functions
from gradwhy.backends.tensorflow import records as rec
from gradwhy.backends.tensorflow.autograph import places_of_stack
from gradwhy.backends.tensorflow.functions import Functions
from gradwhy.backends.tensorflow.ops import PAIRED, Registry, is_float
from gradwhy.backends.tensorflow.record import Recorder
from gradwhy.flow import Barrier, Passage, Place, Unrecorded
from gradwhy.source.positions import places_of

_CALLS = frozenset({"PartitionedCall", "StatefulPartitionedCall"})
_BRANCHES = frozenset({"If", "StatelessIf"})
_LOOPS = frozenset({"While", "StatelessWhile"})
_CASES = frozenset({"Case", "StatelessCase"})
_TAPE_CALLS = ("__forward_", "__inference_")


@dataclass(eq=False, slots=True)
class Body:
    """One run of a graph: what its inputs were, and the scopes and time of the step that ran it.

    `time` is None for a graph that is being traced: its ops have times of their own.
    """

    graph: Any
    name: str
    inputs: dict[int, Any]
    scopes: tuple[int, ...] | None
    time: tuple[int, ...] | None
    places: tuple[Place, ...] = ()
    outer: Body | None = None
    inner: dict[Any, Body] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Symbol:
    """A tensor of a graph, in one run of it; `carry` marks the value that a loop hands from turn to turn."""

    body: Body
    tensor: Any
    carry: bool = False
    unrecorded: Unrecorded | None = None

    @property
    def key(self) -> Any:
        return (id(self.body), id(self.tensor), self.carry)


class GraphReader:
    """The ops behind symbolic tensors, with the user's lines, and across the borders of bodies."""

    def __init__(self, recorder: Recorder, functions: Functions, registry: Registry) -> None:
        self.recorder, self.functions, self.registry = recorder, functions, registry
        self.traced: dict[int, Body] = {}
        self.calls: dict[int, Body] = {}
        self.passed_in: list[Any] = []
        """Handles of variables that the program passes to the function that is being traced."""

    def symbol(self, tensor: Any) -> Symbol:
        """A symbolic tensor of a graph that is being traced."""
        return Symbol(self.traced_body(tensor.graph), tensor)

    def traced_body(self, graph: Any) -> Body:
        body = self.traced.get(id(graph))
        if body is None:
            outer_graph = getattr(graph, "outer_graph", None)
            is_inside = outer_graph is not None and hasattr(outer_graph, "captures")
            outer = self.traced_body(outer_graph) if is_inside else None
            body = self.traced[id(graph)] = Body(graph, graph.name, {}, None, None, (), outer)
            for outside, placeholder in getattr(graph, "captures", ()):
                body.inputs[id(placeholder)] = self.outside(outside)
            self.bind_variables(body)
        return body

    def bind_variables(self, body: Body) -> None:
        """Variables that were passed as arguments: the graph holds them apart from the inputs that stand for them."""
        bound = {id(made()) for made in body.inputs.values() if isinstance(made, rec.Made)}
        known = [*(v.handle for v in getattr(body.graph, "variables", ())), *self.passed_in]
        waiting = [handle for handle in known if id(handle) not in bound]
        for placeholder in getattr(body.graph, "inputs", ()):
            if placeholder.dtype.name != "resource" or id(placeholder) in body.inputs:
                continue
            kind = rec.handle_type(placeholder)
            same = next((h for h in waiting if kind is None or rec.handle_type(h) == kind), None)
            if same is not None and hasattr(same, "_numpy_internal"):
                waiting = [h for h in waiting if h is not same]
                body.inputs[id(placeholder)] = self.recorder.of(same)

    def outside(self, tensor: Any) -> Any:
        """A captured tensor: symbolic in an outer graph, or eager."""
        if hasattr(tensor, "_numpy_internal"):
            return self.recorder.of(tensor)
        return self.symbol(tensor)

    def called(self, record: rec.Record) -> Body | None:
        """The body that a recorded call ran, None where the record is no call or its graph is gone."""
        body = self.calls.get(id(record))
        if body is not None:
            return body
        op = record[rec.OP]
        graph = self.functions.graph(op)
        if graph is None or len(graph.inputs) > len(record[rec.INPUTS]):
            return None
        inputs = {id(p): made for p, made in zip(graph.inputs, record[rec.INPUTS], strict=False)}
        name = _plain_name(op.decode() if isinstance(op, bytes) else op)
        places = places_of(record[rec.FRAMES])
        body = Body(graph, name, inputs, record[rec.SCOPES], (record[rec.TIME],), places)
        self.calls[id(record)] = body
        return body

    def resolved(self, origin: Any) -> Any:
        """`origin` itself, or what a body's input stands for in the step that ran the body."""
        while isinstance(origin, Symbol) and not origin.carry and id(origin.tensor) in origin.body.inputs:
            origin = origin.body.inputs[id(origin.tensor)]
        return origin

    def draft(self, symbol: Symbol, fed: Callable[..., Any], carries: Callable[..., Any]) -> Any:
        """What made a symbolic tensor: name, inputs, order, places, scopes, whether it is a gradient's; None for a beginning."""
        op, body = symbol.tensor.op, symbol.body
        if op.type == "Placeholder":
            return None
        index = symbol.tensor.value_index
        scopes, order, is_backward = self.surroundings(op, body)
        places = self.places(op, body)
        inputs = self.inputs(op, body, index, fed, carries, (scopes, order, places))
        if not inputs and not op.inputs:
            return None
        return op.type, inputs, order, places, scopes, is_backward

    def inputs(
        self, op: Any, body: Body, index: int, fed: Callable[..., Any], carries: Callable[..., Any], around: Any
    ) -> list[Any]:
        if op.type in _CALLS:
            inner = self.inside(op, body, "f", op.inputs, around)
            if inner is not None and index < len(inner.graph.outputs):
                return [fed(Symbol(inner, inner.graph.outputs[index]))]
        if op.type in _BRANCHES or op.type in _CASES:
            return self.branches(op, body, index, fed, around)
        if op.type in _LOOPS:
            return self.loop(op, body, index, fed, around)
        made = _dtype(op.outputs[index])
        if op.type == "Const":
            return self.constant(op, body, around[2], fed) if is_float(made) else []
        custom, token = _custom_type(op), py_functions.token_of(op)
        has_gradient = True if custom else self.registry.has_gradient(op.type)
        found = []
        for position, given in enumerate(op.inputs):
            if custom is None and op.type in PAIRED and position != index:
                continue
            passage, barrier = carries(
                op.type,
                position,
                given=_dtype(given),
                made=made,
                has_gradient=has_gradient,
                is_whole=self.registry.is_whole(op.type, position, count=len(op.inputs)),
                output=index,
            )
            if custom is not None and position in self.recorder.custom_none.get(custom, ()):
                passage, barrier = Passage.CUT, Barrier.CUSTOM
            if token is not None and position in self.recorder.custom_none.get(token, ()):
                barrier, span = py_functions.way_out(token)
                found.append(fed(Symbol(body, given), Passage.CUT, barrier, True, span))
                continue
            found.append(fed(Symbol(body, given), passage, barrier))
        return found

    def constant(self, op: Any, body: Body, places: tuple[Place, ...], fed: Callable[..., Any]) -> list[Any]:
        """What left the framework and came back as a constant of the graph: seen, or else by the text around the function."""
        entry = self.recorder.graphs.get(body.graph)
        seen = entry.constants.get(op.name, ()) if entry is not None else ()
        left = seen or (self.recorder.left_around(places[0].span) if places else ())
        return [fed(origin, Passage.CUT, Barrier.HOST, bool(seen)) for origin in left]

    def branches(self, op: Any, body: Body, index: int, fed: Callable[..., Any], around: Any) -> list[Any]:
        names = ("then_branch", "else_branch") if op.type in _BRANCHES else ("branches",)
        found = [fed(Symbol(body, op.inputs[0]), Passage.NOTHING, Barrier.CONDITION)]
        for name in names:
            inner = self.inside(op, body, name, op.inputs[1:], around)
            if inner is not None and index < len(inner.graph.outputs):
                found.append(fed(Symbol(inner, inner.graph.outputs[index])))
        if len(found) == 1:
            found.extend(fed(Symbol(body, given), Passage.CUT, Barrier.UNRECORDED) for given in op.inputs[1:])
        return found

    def loop(self, op: Any, body: Body, index: int, fed: Callable[..., Any], around: Any) -> list[Any]:
        """A loop's value comes from what it began with, or from the last turn of its body."""
        found = [fed(Symbol(body, op.inputs[index]))]
        inner = self.inside(op, body, "body", (), around)
        if inner is None:
            return found
        for placeholder, made in zip(inner.graph.inputs, op.outputs, strict=False):
            inner.inputs[id(placeholder)] = Symbol(body, made)
        if index < len(inner.graph.outputs):
            found.append(fed(Symbol(inner, inner.graph.outputs[index])))
        return found

    def inside(self, op: Any, body: Body, attribute: str, given: Any, around: Any) -> Body | None:
        """The body that an op of a graph runs, in this run of that graph."""
        key = (op.name, attribute)
        if key in body.inner:
            return body.inner[key]
        graph = self.functions.graph(op.get_attr(attribute).name)
        if graph is None:
            return None
        scopes, order, places = around
        inputs = {id(p): Symbol(body, g) for p, g in zip(graph.inputs, given, strict=False)}
        inner = Body(graph, _plain_name(graph.name), inputs, scopes, order, places, body)
        body.inner[key] = inner
        return inner

    def surroundings(self, op: Any, body: Body) -> tuple[tuple[int, ...], tuple[int, ...], bool]:
        """The scopes and the order of a graph's op: those of the step that ran it, and what its own text opened."""
        entry = self.recorder.graphs.get(body.graph)
        known = entry.ops.get(op.name) if entry is not None else None
        scopes, time, is_backward = (known[0], known[1], known[3]) if known else ((), 0, False)
        if body.time is None or body.scopes is None:
            return scopes, (time,), is_backward
        base = entry.base if entry is not None else ()
        own = tuple(s for s in scopes if s not in base)
        return body.scopes + own, (*body.time, time), is_backward

    def places(self, op: Any, body: Body) -> tuple[Place, ...]:
        """The user's lines that put an op into its graph, innermost first, mapped back from generated code."""
        return places_of_stack(op.traceback) or body.places


def _plain_name(name: str) -> str:
    """The user's name of a compiled function: `step` for `__inference_step_123`."""
    for prefix in _TAPE_CALLS:
        if name.startswith(prefix):
            name = name[len(prefix) :]
    head, _, tail = name.rpartition("_")
    return head if tail.isdigit() and head else name


def _dtype(tensor: Any) -> str:
    name = str(tensor.dtype.base_dtype.name)
    return "" if name in ("resource", "variant") else name


def _custom_type(op: Any) -> str | None:
    if op.type != "IdentityN":
        return None
    try:
        return str(op.get_attr("_gradient_op_type").decode())
    except (ValueError, AttributeError):
        return None
