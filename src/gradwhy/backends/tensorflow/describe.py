"""From records and graphs to the slice of the flow graph that answers one question."""

from __future__ import annotations

import ast
from collections import deque
from dataclasses import dataclass
from types import CodeType
from typing import Any

from gradwhy.backends.tensorflow import records as rec
from gradwhy.backends.tensorflow.doors import HOST, CustomGradient
from gradwhy.backends.tensorflow.functions import Functions
from gradwhy.backends.tensorflow.graphs import Body, GraphReader, Symbol
from gradwhy.backends.tensorflow.inferred import LIKELY
from gradwhy.backends.tensorflow.ops import PAIRED, Registry, carries
from gradwhy.backends.tensorflow.record import Recorder
from gradwhy.backends.tensorflow.scopes import Tapes, TapeScope
from gradwhy.flow import (
    Barrier,
    FlowGraph,
    Input,
    Op,
    Passage,
    Place,
    Scope,
    ScopeRole,
    Span,
    Unrecorded,
    Value,
    ValueKind,
    Watch,
)
from gradwhy.source.files import read, shown_path
from gradwhy.source.locate import path_to, span_of_syntax
from gradwhy.source.positions import places_of
from gradwhy.source.statements import with_header_span

_MOST_OPS = 60_000
_PASSING = frozenset({"py_function", "ReadVariableOp", "gradient", "MakeIterator"}) | rec.STATE_READS
"""Ops that give what they were given."""


@dataclass(frozen=True, slots=True)
class Fed:
    """One input of an op in the making: where it comes from, and what it carries."""

    origin: Any
    passage: Passage = Passage.FLOWS
    barrier: Barrier | None = None
    is_observed: bool = True
    span: Span | None = None


@dataclass(slots=True)
class Draft:
    """An op in the making. `order` sorts ops as they ran."""

    name: str
    order: tuple[int, ...]
    inputs: list[Fed]
    output: int
    places: tuple[Place, ...]
    scopes: tuple[int, ...]
    is_backward: bool = False
    is_user_code: bool = True
    span: Span | None = None


class Slice:
    """Everything that the targets were made from, as far as it was recorded."""

    def __init__(self, recorder: Recorder, tapes: Tapes, functions: Functions, registry: Registry, dtypes: Any) -> None:
        self.recorder, self.tapes, self.registry, self.dtypes = recorder, tapes, registry, dtypes
        self.graphs = GraphReader(recorder, functions, registry)
        self.numbers: dict[Any, int] = {}
        self.values: dict[int, Value] = {}
        self.drafts: list[Draft] = []
        self.todo: deque[Any] = deque()
        self.scopes: set[int] = set()
        self.seen: list[Any] = []
        self.looked_at: list[Any] = []
        self.is_complete = True

    # Values

    def value(self, origin: Any) -> int:
        """The number of the value that `origin` stands for; what made it is looked at later."""
        origin = self.graphs.resolved(origin)
        key = origin.key if isinstance(origin, Symbol) else self.made_key(origin)
        if key not in self.numbers:
            self.numbers[key] = number = len(self.numbers)
            self.values[number] = self.described(origin, number)
            self.todo.append(origin)
            if not isinstance(origin, Symbol):
                self.seen.append(origin)
        return self.numbers[key]

    def number_of(self, origin: Any) -> int | None:
        """The number of a value that the slice holds, None if it does not."""
        key = origin.key if isinstance(origin, Symbol) else self.made_key(origin)
        return self.numbers.get(key)

    @staticmethod
    def made_key(made: Any) -> Any:
        record = made.record
        if record is rec.NUMBER:
            return id(made)
        return id(record) if record[rec.OP] is rec.VARIABLE else (id(record), made.index)

    def described(self, origin: Any, number: int) -> Value:
        if isinstance(origin, Symbol):
            tensor = origin.tensor
            kind = ValueKind.VARIABLE if tensor.dtype.name == "resource" else ValueKind.TENSOR
            return Value(number, kind, _captured(tensor.dtype.name), _shape(tensor), origin.unrecorded)
        record = origin.record
        tensor = origin() if isinstance(origin, rec.Made) else None
        op = record[rec.OP]
        if op is rec.VARIABLE:
            return Value(number, ValueKind.VARIABLE, "", None)
        kind = ValueKind.HOST if record[rec.EXTRA] in (HOST, LIKELY) and op != "constant" else ValueKind.TENSOR
        dtype = "" if kind is ValueKind.HOST else self.dtype(record, origin.index, tensor)
        lost = Unrecorded.DROPPED if op is rec.DROPPED else None
        return Value(number, kind, dtype, _shape(tensor) if tensor is not None else None, lost)

    def dtype(self, record: rec.Record, index: int, tensor: Any) -> str:
        if tensor is not None and hasattr(tensor, "dtype"):
            return _captured(str(tensor.dtype.name))
        number = record[rec.DTYPE]
        if index and self.registry.makes_whole(_text(record[rec.OP]), index):
            return "int32"
        return _captured(str(self.dtypes.as_dtype(number).name)) if number else ""

    # Ops

    def grow(self) -> None:
        """Follow every value back to its beginnings."""
        while self.todo:
            if len(self.drafts) > _MOST_OPS:
                self.is_complete = False
                return
            origin = self.todo.popleft()
            self.looked_at.append(origin)
            if isinstance(origin, Symbol):
                self.grow_symbol(origin)
            else:
                self.grow_made(origin)

    def grow_made(self, made: Any) -> None:
        record = made.record
        op, inputs = record[rec.OP], record[rec.INPUTS]
        if not inputs:
            return
        output = self.value(made)
        if op is rec.VARIABLE:
            began = inputs[0]
            if began is made or not began.record[rec.INPUTS]:
                return
            fed = [Fed(began, Passage.CUT, Barrier.NEW_OBJECT)]
            self.draft(record, "tf.Variable", fed, output)
            return
        body = self.graphs.called(record)
        if body is not None and made.index < len(body.graph.outputs):
            self.grow_call(record, body, made.index, output)
            return
        self.draft(record, _shown(_text(op)), self.fed(record, made), output, getattr(made, "span", None))

    def grow_call(self, record: rec.Record, body: Body, index: int, output: int) -> None:
        """A call of a compiled function: its own step in the path is the function's output."""
        inner = Symbol(body, body.graph.outputs[index])
        self.draft(record, body.name, [Fed(inner)], output)

    def fed(self, record: rec.Record, output: Any) -> list[Fed]:
        op, extra, inputs = _text(record[rec.OP]), record[rec.EXTRA], record[rec.INPUTS]
        if extra is rec.WRITTEN:
            return [Fed(i, Passage.CUT, Barrier.WRITE) for i in inputs]
        if extra in (HOST, LIKELY):
            return [Fed(i, Passage.CUT, Barrier.HOST, extra == HOST) for i in inputs]
        if extra is rec.SUMMED_UP or extra is rec.BODY or op in _PASSING:
            return [Fed(i) for i in inputs]
        if op.endswith(("Dataset", "DatasetV2", "DatasetV3", "DatasetV4")):
            # A data set holds the numbers, and knows nothing of gradients.
            return [Fed(i, Passage.CUT, Barrier.HOST) if self.given_dtype(i) else Fed(i) for i in inputs]
        if isinstance(extra, CustomGradient):
            return [_custom_fed(i, position, extra) for position, i in enumerate(inputs)]
        made = self.given_dtype(output)
        has_gradient = self.registry.has_gradient(op)
        found = []
        for position, given in enumerate(inputs):
            if op in PAIRED and position != output.index:
                continue
            passage, barrier = carries(
                op,
                position,
                given=self.given_dtype(given),
                made=made,
                has_gradient=has_gradient,
                is_whole=self.registry.is_whole(op, position, count=len(inputs)),
                output=output.index,
            )
            if extra is rec.BACKWARD and barrier is Barrier.SHAPE:
                # A gradient begins with ones in the shape of its target: the target's numbers take no part in it.
                continue
            found.append(Fed(given, passage, barrier))
        return found

    def given_dtype(self, made: Any) -> str:
        record = made.record
        if record[rec.OP] is rec.VARIABLE:
            return ""
        return self.dtype(record, made.index, made() if isinstance(made, rec.Made) else None)

    def draft(self, record: rec.Record, name: str, inputs: list[Fed], output: int, span: Span | None = None) -> None:
        self.scopes.update(record[rec.SCOPES])
        places = places_of(record[rec.FRAMES])
        if span is not None:
            places = (Place(span, places[0].function if places else ""), *places)
        is_backward = record[rec.EXTRA] is rec.BACKWARD
        self.drafts.append(
            Draft(name, (record[rec.TIME],), inputs, output, places, record[rec.SCOPES], is_backward, record[rec.MINE])
        )
        for fed in inputs:
            self.value(fed.origin)

    def grow_symbol(self, symbol: Symbol) -> None:
        drafted = self.graphs.draft(symbol, Fed, carries)
        if drafted is None:
            return
        name, inputs, order, places, scopes, is_backward = drafted
        if is_backward:
            inputs = [fed for fed in inputs if fed.barrier is not Barrier.SHAPE]
        self.scopes.update(scopes)
        self.drafts.append(Draft(name, order, inputs, self.value(symbol), places, scopes, is_backward))
        for fed in inputs:
            self.value(fed.origin)

    # The graph

    def graph(self, asked: TapeScope | None, watched: frozenset[int]) -> FlowGraph:
        """The slice as a flow graph. `watched` holds the numbers of the variables that the asked tape watched."""
        ops = []
        for number, draft in enumerate(sorted(self.drafts, key=lambda d: d.order)):
            edges = tuple(
                Input(self.value(f.origin), f.passage, f.barrier, f.is_observed, f.span) for f in draft.inputs
            )
            ops.append(
                Op(
                    number,
                    draft.name,
                    draft.order[0],
                    edges,
                    (draft.output,),
                    draft.places,
                    draft.scopes,
                    is_boundary=draft.is_backward,
                    is_user_code=draft.is_user_code,
                )
            )
        if asked is not None:
            self.scopes.add(asked.number)
        scopes = [self.tapes.scopes[n] for n in sorted(self.scopes) if n in self.tapes.scopes]
        described = tuple(self.scope(s, watched if s is asked else frozenset()) for s in scopes)
        return FlowGraph(tuple(self.values.values()), tuple(ops), described, self.is_complete)

    def scope(self, scope: TapeScope, watched: frozenset[int]) -> Scope:
        places = places_of(scope.frames)
        span = places[0].span if places else None
        header = (with_header_span(span) if span else None) or span
        watches = [Watch(number, scope.start) for number in sorted(watched)]
        for made, time, frames in scope.watches:
            number = self.number_of(made)
            if number is not None:
                at = places_of(frames[:1])
                watches.append(Watch(number, time, at[0].span if at else None))
        return Scope(
            id=scope.number,
            kind=scope.kind,
            role=ScopeRole.RECORDS if scope.records else ScopeRole.PAUSES,
            start=scope.start,
            end=scope.end,
            span=header,
            pauses=scope.pauses,
            watches=tuple(watches),
            holds_leaves=scope.watches_variables,
            watches_reach_back=True,
            name=_bound_name(span) if span else "",
        )


def _text(op: Any) -> str:
    return op.decode() if isinstance(op, bytes) else str(op)


def _shown(op: str) -> str:
    """An op's name as a path shows it."""
    return "read" if op == "ReadVariableOp" else op


def _captured(dtype: str) -> str:
    return "" if dtype in ("resource", "variant") else dtype


def _shape(tensor: Any) -> tuple[int | None, ...] | None:
    shape = getattr(tensor, "shape", None)
    try:
        return tuple(shape) if shape is not None and shape.rank is not None else None
    except (AttributeError, ValueError):
        return None


def _custom_fed(made: Any, position: int, custom: CustomGradient) -> Fed:
    if position in custom.given_none or position in custom.given_zero:
        span = _return_span(custom.code, position, is_none=position in custom.given_none)
        return Fed(made, Passage.CUT, Barrier.CUSTOM, span=span)
    return Fed(made)


def _return_span(code: CodeType | None, position: int, *, is_none: bool) -> Span | None:
    """The statement of a user's gradient function that gave nothing for an input; the input's own part where it can be told."""
    file = read(code.co_filename) if code is not None else None
    if code is None or file is None or file.tree is None:
        return None
    for part in ast.walk(file.tree):
        if isinstance(part, (ast.FunctionDef, ast.Lambda)) and part.lineno == code.co_firstlineno:
            answers = [part.body] if isinstance(part, ast.Lambda) else []
            answers += [r.value for r in ast.walk(part) if isinstance(r, ast.Return) and r.value is not None]
            for answer in answers:
                if isinstance(answer, ast.Tuple) and position < len(answer.elts):
                    answer = answer.elts[position]
                return span_of_syntax(file, answer, shown_path(file.path))
    return None


def _bound_name(span: Span) -> str:
    """The name that a `with` statement gives to the recording it opens at `span`."""
    for part in reversed(path_to(span)):
        if isinstance(part, (ast.With, ast.AsyncWith)):
            for item in part.items:
                if isinstance(item.optional_vars, ast.Name) and item.context_expr.lineno == span.line:
                    return item.optional_vars.id
            return ""
    return ""
