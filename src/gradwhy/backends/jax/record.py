"""What ran: one small record for each primitive that the program bound, hung on the lifetime of what it made."""

from __future__ import annotations

import sys
import threading
import weakref
from collections.abc import Callable
from itertools import count
from types import CodeType, TracebackType
from typing import Any

import jax
from jax.extend import source_info_util
from jax.extend.core import Primitive

from gradwhy.backends.patches import Hooks
from gradwhy.source import positions

Frames = tuple[tuple[CodeType, int], ...]

MOST_FRAMES = 12
LONGEST_HISTORY = 20_000
"""How many ops may lie behind a value before what came first is given up."""

# What a tracer wraps: its value one level of transformation further out.
_INNER = {"LinearizeTracer": "primal", "JVPTracer": "primal", "BatchTracer": "val"}
_DIFFERENTIATED = ("LinearizeTracer", "JVPTracer")


class Stretch:
    """The time during which one differentiated function ran; `end` is None while it does."""

    __slots__ = ("end", "frames", "kind", "number", "start")

    def __init__(self, number: int, kind: str, start: int, frames: Frames) -> None:
        self.number = number
        self.kind = kind
        self.start = start
        self.end: int | None = None
        self.frames = frames


class ValueRecord:
    """One value: what made it, and for which differentiations it carries a derivative.

    `tags` are JAX's own marks of the differentiations that follow the value. `held` is the array itself, only while the
    question that it belongs to is watched fully.
    """

    __slots__ = ("aval", "held", "index", "is_dropped", "maker", "read_at", "ref", "tags")

    def __init__(self, aval: Any, maker: OpRecord | None = None, index: int = 0, tags: tuple[Any, ...] = ()) -> None:
        self.aval = aval
        self.maker = maker
        self.index = index
        self.tags = tags
        self.held: Any = None
        self.is_dropped = False
        self.read_at: Frames = ()
        self.ref: Reference | None = None


class OpRecord:
    """One bound primitive.

    The ops of a backward pass have in `passed` all ops of that pass, and in `origin` where JAX itself says they belong.
    """

    __slots__ = (
        "depth",
        "frames",
        "inputs",
        "open",
        "origin",
        "outputs",
        "params",
        "passed",
        "primitive",
        "tags",
        "time",
    )

    def __init__(
        self,
        primitive: Primitive,
        params: dict[str, Any],
        inputs: tuple[ValueRecord | None, ...],
        frames: Frames,
        time: int,
        open_stretches: tuple[Stretch, ...],
    ) -> None:
        self.primitive = primitive
        self.params = params
        self.inputs = inputs
        self.frames = frames
        self.time = time
        self.open = open_stretches
        self.outputs: tuple[Any, ...] = ()
        self.tags: tuple[tuple[Any, ...], ...] = ()
        self.passed: list[OpRecord] | None = None
        self.origin: Any = None
        self.depth = 1 + max((i.maker.depth for i in inputs if i is not None and i.maker is not None), default=0)


class Reference(weakref.ref[Any]):
    """A weak reference that carries the record of what it refers to."""

    __slots__ = ("key", "record")
    key: int
    record: ValueRecord


class Here(threading.local):
    """What one thread is doing."""

    depth: int = 0
    """How many binds of primitives are open; only the outermost is the program's own."""
    open: tuple[Stretch, ...] = ()
    backward: list[OpRecord] | None = None
    """The ops of the backward pass that runs, in their order."""
    is_held = False
    """Whether what the backward pass makes is kept until the question is answered."""
    pending: Any = None
    """The question whose differentiated function is about to be called."""


class Recorder:
    """Keeps the records of all values that are alive."""

    def __init__(self) -> None:
        self.here = Here()
        self._alive: dict[int, Reference] = {}
        self._clock = count(1)
        self._tracer_type: type = jax.core.Tracer

    def attach(self, hooks: Hooks) -> None:
        """Observe every primitive from now on."""
        hooks.patch(Primitive, "bind", self._observing(Primitive.bind, hooks.guarded("jax.Primitive.bind", self._note)))
        hooks.add(self._alive.clear)

    def now(self) -> int:
        """A time later than that of everything recorded so far."""
        return next(self._clock)

    def of(self, value: Any) -> ValueRecord | None:
        """The record of a value, or of what a tracer stands for; None for a value never seen."""
        while True:
            reference = self._alive.get(id(value))
            # A value that is part of a cycle may be collected before its callback runs, and its id be given anew.
            if reference is not None and reference() is value:
                return reference.record
            inner = _INNER.get(type(value).__name__) if isinstance(value, self._tracer_type) else None
            if inner is None:
                return None
            value = getattr(value, inner)

    def begin(self, value: Any, maker: OpRecord | None = None, index: int = 0) -> ValueRecord:
        """A record for a value as it stands, in place of any that it had."""
        record = ValueRecord(aval_of(value), maker, index, self.tags(value))
        self._register(value, record)
        return record

    def tags(self, value: Any) -> tuple[Any, ...]:
        """JAX's marks of the differentiations that follow a value, the innermost first."""
        found: list[Any] = []
        while isinstance(value, self._tracer_type):
            kind = type(value).__name__
            if kind in _DIFFERENTIATED:
                found.append(value._trace.tag)
            inner = _INNER.get(kind)
            if inner is None:
                break
            value = getattr(value, inner)
        return tuple(found)

    def _observing(self, original: Callable[..., Any], note: Callable[..., Any]) -> Callable[..., Any]:
        here = self.here

        def bind(self: Primitive, /, *args: Any, **params: Any) -> Any:
            if here.depth:
                return original(self, *args, **params)
            here.depth = 1
            try:
                out = original(self, *args, **params)
            finally:
                here.depth = 0
            note(self, args, params, out)
            return out

        bind.__doc__, bind.__qualname__, bind.__module__ = original.__doc__, original.__qualname__, original.__module__
        return bind

    def _note(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any], out: Any) -> None:
        here = self.here
        made = out if primitive.multiple_results else (out,)
        if not made:
            return
        # This method, `guarded`'s hook and `bind` are ours.
        frames = positions.user_frames(sys._getframe(3), MOST_FRAMES)
        inputs = tuple([self._input(a, frames) for a in args])
        op = OpRecord(primitive, params, inputs, frames, next(self._clock), here.open)
        is_too_long = op.depth > LONGEST_HISTORY
        if is_too_long:
            op.inputs, op.depth = (), 1
        if here.backward is not None:
            here.backward.append(op)
            op.passed = here.backward
            op.origin = source_info_util.current().traceback
        op.outputs = tuple([aval_of(value) for value in made])
        op.tags = tuple([self.tags(value) for value in made])
        for index, value in enumerate(made):
            # Some primitives hand an input on as it is.
            if not any(value is a for a in args):
                record = ValueRecord(op.outputs[index], op, index, op.tags[index])
                record.is_dropped = is_too_long
                if here.is_held:
                    record.held = value
                self._register(value, record)

    def _input(self, value: Any, frames: Frames) -> ValueRecord | None:
        """The record of what an op reads; None for a Python number."""
        record = self.of(value)
        if record is None:
            if not hasattr(value, "dtype"):
                return None
            record = self.begin(value)
        if record.maker is None or not record.maker.inputs:
            record.read_at = frames
        return record

    def _register(self, value: Any, record: ValueRecord) -> None:
        self._refer(value, record, replaces=True)
        while isinstance(value, self._tracer_type):
            inner = _INNER.get(type(value).__name__)
            if inner is None:
                return
            value = getattr(value, inner)
            # An op may hand on what stands behind its input: that keeps its own record.
            self._refer(value, record, replaces=False)

    def _refer(self, value: Any, record: ValueRecord, *, replaces: bool) -> None:
        key = id(value)
        known = self._alive.get(key)
        if not replaces and known is not None and known() is value:
            return
        try:
            reference = Reference(value, self._died)
        except TypeError:
            return
        reference.key, reference.record = key, record
        if record.ref is None:
            record.ref = reference
        self._alive[key] = reference

    def _died(self, reference: Reference) -> None:
        if self._alive.get(reference.key) is reference:
            del self._alive[reference.key]


def frames_of_traceback(raised: TracebackType | None) -> Frames:
    """The user's frames of an exception's traceback, innermost first."""
    found = []
    while raised is not None:
        if positions.is_user_code(raised.tb_frame.f_code):
            found.append((raised.tb_frame.f_code, raised.tb_lasti))
        raised = raised.tb_next
    return tuple(reversed(found))[:MOST_FRAMES]


def frames_of_origin(origin: Any) -> Frames:
    """The user's frames of JAX's own traceback of an op, innermost first."""
    if origin is None:
        return ()
    codes, lastis = origin.raw_frames()
    raw = zip(codes, lastis, strict=True)
    return tuple((code, lasti) for code, lasti in raw if positions.is_user_code(code))[:MOST_FRAMES]


def aval_of(value: Any) -> Any:
    aval = getattr(value, "aval", None)
    return _Like(value) if aval is None else aval


class _Like:
    """The type and shape of a NumPy array, without the array."""

    __slots__ = ("dtype", "shape")

    def __init__(self, value: Any) -> None:
        self.dtype = getattr(value, "dtype", "")
        self.shape = getattr(value, "shape", ())
