"""What ran: one small record for each primitive that the program bound, hung on the lifetime of what it made."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable
from itertools import count
from types import CodeType, TracebackType
from typing import Any

import jax
from jax.extend import source_info_util
from jax.extend.core import Primitive

from gradwhy import version
from gradwhy.backends.patches import Hooks, standing
from gradwhy.source import positions

Frames = tuple[tuple[CodeType, int], ...]

MOST_FRAMES = 12
MOST_EXITS = 256
LONGEST_HISTORY = 20_000
"""How many ops may lie behind a value before what came first is given up."""

# What a tracer wraps, its value one level of transformation further out, and whether that level differentiates.
_INNER = {"LinearizeTracer": ("primal", True), "JVPTracer": ("primal", True), "BatchTracer": ("val", False)}


_STOP = Primitive("stop_gradient")


class Stretch:
    """The time during which one differentiated function ran; `end` is None while it does.

    `exits` are the values that went where JAX does not follow, without an error: where, and how.
    """

    __slots__ = ("end", "exits", "frames", "kind", "number", "start")

    def __init__(self, number: int, kind: str, start: int, frames: Frames) -> None:
        self.number = number
        self.kind = kind
        self.start = start
        self.end: int | None = None
        self.frames = frames
        self.exits: list[tuple[ValueRecord, Frames, str]] = []


class ValueRecord:
    """One value: what made it, and for which differentiations it carries a derivative.

    `tags` are JAX's own marks of the differentiations that follow the value, the innermost first. `held` is the array
    itself, only while the question that it belongs to is watched fully; `read_at` the stack on which a value that nothing
    made was last read; `is_unseen` says that a backward pass made the value in a way that shows no primitive; `argument` is
    the number of the source that a question's tracer stands for.
    """

    __slots__ = ("argument", "aval", "held", "index", "is_dropped", "is_unseen", "maker", "read_at", "ref", "tags")

    def __init__(self, aval: Any, maker: OpRecord | None = None, index: int = 0) -> None:
        self.aval = aval
        self.maker = maker
        self.index = index
        self.tags: tuple[Any, ...] = ()
        self.held: Any = None
        self.is_dropped = False
        self.is_unseen = False
        self.read_at: Any = None
        self.argument: int | None = None
        self.ref: Reference | None = None

    @property
    def value(self) -> Any:
        """The value itself; None once it is gone."""
        return self.ref() if self.ref is not None else None


class OpRecord:
    """One bound primitive, with the stack it was bound on.

    The ops of a backward pass have that in `passing`, and in `origin` where JAX itself says they belong.
    """

    __slots__ = (
        "depth",
        "inputs",
        "open",
        "origin",
        "outputs",
        "params",
        "passing",
        "primitive",
        "stack",
        "tags",
        "time",
    )

    def __init__(
        self,
        primitive: Primitive,
        params: dict[str, Any],
        inputs: tuple[ValueRecord | None, ...],
        stack: Any,
        time: int,
        open_stretches: tuple[Stretch, ...],
    ) -> None:
        self.primitive = primitive
        self.params = params
        self.inputs = inputs
        self.stack = stack
        self.time = time
        self.open = open_stretches
        self.outputs: tuple[Any, ...] = ()
        self.tags: tuple[tuple[Any, ...], ...] = ()
        self.passing: Pass | None = None
        self.origin: Any = None
        depth = 0
        for read in inputs:
            if read is not None and read.maker is not None and read.maker.depth > depth:
                depth = read.maker.depth
        self.depth: int = depth + 1

    @property
    def frames(self) -> Frames:
        """The user's frames, innermost first."""
        return frames_of_stack(self.stack)


class Reference(weakref.ref[Any]):
    """A weak reference that carries the record of what it refers to."""

    __slots__ = ("key", "record")
    key: int
    record: ValueRecord


class Pass:
    """One backward pass: its ops, in their order.

    `is_held` says that what they make is kept until the question is answered, `is_idle` that nobody wants to know.
    """

    __slots__ = ("is_held", "is_idle", "ops")

    def __init__(self, *, is_held: bool = False) -> None:
        self.ops: list[OpRecord] = []
        self.is_held = is_held
        self.is_idle = False


class Here(threading.local):
    """What one thread is doing."""

    depth: int = 0
    """How many binds of primitives are open; only the outermost is the program's own."""
    open: tuple[Stretch, ...] = ()
    passing: Pass | None = None
    """The backward pass that runs."""
    failed: tuple[Any, ...] = ()
    """What the primitive read that last raised in a differentiated function."""
    pending: Any = None
    """The question whose differentiated function is about to be called."""


class Recorder:
    """Keeps the records of all values that are alive."""

    def __init__(self) -> None:
        self.here = Here()
        self._alive: dict[int, Reference] = {}
        self._clock = count(1)
        self._kinds: dict[type, tuple[str, bool] | None] = {}
        # A walk over the frames in Python costs four times as much.
        traceback_type: Any = type(source_info_util.current().traceback)
        self._stack: Callable[[], Any] = traceback_type.get_traceback
        self._on_death = self._died

    def attach(self, hooks: Hooks) -> None:
        """Observe every primitive from now on."""
        # JAX writes the user's innermost frame into what it compiles; `bind` must not become that frame.
        source_info_util.register_exclusion(os.path.join(os.path.dirname(version.__file__), ""))
        hooks.patch(Primitive, "bind", self._observing(Primitive.bind, hooks.guarded("jax.Primitive.bind", self._note)))
        hooks.wrap(jax.lax, "stop_gradient", "jax.lax.stop_gradient", after=self._note_stop)
        for name in ("item", "tolist", "__float__", "__int__"):
            hooks.wrap(jax.core.Tracer, name, f"jax.core.Tracer.{name}", after=self._note_number)
        hooks.wrap(jax.custom_jvp, "__call__", "jax.custom_jvp.call", after=self._note_setting)
        hooks.add(standing("jax's records", self._alive.clear))

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
            kind = self._kind(value)
            if kind is None:
                return None
            value = getattr(value, kind[0])

    def begin(self, value: Any) -> ValueRecord:
        """A record for a value that begins here, in place of any that it had."""
        record = ValueRecord(aval_of(value))
        # What was compiled before runs in C++: a derivative rule of the user's that runs eagerly shows no primitives.
        passing = self.here.passing
        if passing is not None and isinstance(value, jax.Array):
            record.is_unseen = True
            record.held = _array_behind(value) if passing.is_held else None
        return self._register(value, record)

    def _kind(self, value: Any) -> tuple[str, bool] | None:
        cls = type(value)
        try:
            return self._kinds[cls]
        except KeyError:
            kind = _INNER.get(cls.__name__) if issubclass(cls, jax.core.Tracer) else None
            self._kinds[cls] = kind
            return kind

    def _observing(self, original: Callable[..., Any], note: Callable[..., Any]) -> Callable[..., Any]:
        here = self.here

        def bind(self: Primitive, /, *args: Any, **params: Any) -> Any:
            passing = here.passing
            if here.depth or (passing is not None and passing.is_idle):
                try:
                    return original(self, *args, **params)
                except BaseException as problem:
                    hide(problem)
                    raise
            here.depth = 1
            try:
                out = original(self, *args, **params)
            except BaseException as problem:
                here.depth = 0
                here.failed = args if here.open else ()
                hide(problem)
                raise
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
        stack = self._stack()
        inputs = tuple([self._input(a, stack) for a in args])
        op = OpRecord(primitive, params, inputs, stack, next(self._clock), here.open)
        is_too_long = op.depth > LONGEST_HISTORY
        if is_too_long:
            op.inputs, op.depth = (), 1
        passing = op.passing = here.passing
        if passing is not None:
            passing.ops.append(op)
            op.origin = source_info_util.current().traceback
        outputs, tags = [], []
        for index, value in enumerate(made):
            record = ValueRecord(aval_of(value), op, index)
            # Some primitives hand an input on as it is.
            self._register(value, record, is_handed_on=any(value is a for a in args))
            record.is_dropped = is_too_long
            if passing is not None and passing.is_held:
                record.held = _array_behind(value)
            outputs.append(record.aval)
            tags.append(record.tags)
        op.outputs, op.tags = tuple(outputs), tuple(tags)

    def _note_stop(self, token: None, result: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Record what differentiating forward hides: there, JAX unwraps the value instead of binding a primitive."""
        leaves = jax.tree_util.tree_leaves((args, kwargs))
        for given, stopped in zip(leaves, jax.tree_util.tree_leaves(result), strict=True):
            if type(given).__name__ == "JVPTracer" and self.of(given) is not None:
                stack = self._stack()
                read = self._input(given, stack)
                op = OpRecord(_STOP, {}, (read,), stack, next(self._clock), self.here.open)
                record = ValueRecord(aval_of(stopped), op, 0)
                self._register(stopped, record)
                op.outputs, op.tags = (record.aval,), (record.tags,)

    def _note_number(self, token: None, result: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """A traced value whose number is known, as outside of `jit` it is, was read as a plain one."""
        self._note_exit(args[0], "to-host")

    def _note_setting(self, token: None, result: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """JAX 0.10 stops the gradient of what `nondiff_argnums` names, and hands it to the rule as a constant."""
        function, *given = args
        for number in getattr(function, "nondiff_argnums", ()):
            for leaf in jax.tree_util.tree_leaves(given[number]) if number < len(given) else ():
                self._note_exit(leaf, "nondiff")

    def _note_exit(self, value: Any, kind: str) -> None:
        here = self.here
        record = self.of(value) if here.open and isinstance(value, jax.core.Tracer) else None
        if record is not None and len(here.open[-1].exits) < MOST_EXITS:
            here.open[-1].exits.append((record, frames_of_stack(self._stack()), kind))

    def _input(self, value: Any, stack: Any) -> ValueRecord | None:
        """The record of what an op reads; None for a Python number."""
        record = self.of(value)
        if record is None:
            if not hasattr(value, "dtype"):
                return None
            record = self.begin(value)
        if record.maker is None or not record.maker.inputs:
            record.read_at = stack
        return record

    def _register(self, value: Any, record: ValueRecord, *, is_handed_on: bool = False) -> ValueRecord:
        """Hang a record on a value and on what stands behind it, unless that has one of its own."""
        tags = []
        replaces = not is_handed_on
        while True:
            self._refer(value, record, replaces=replaces)
            kind = self._kind(value)
            if kind is None:
                break
            inner, is_differentiated = kind
            if is_differentiated:
                tags.append(value._trace.tag)
            value = getattr(value, inner)
            # An op may hand on what stands behind its input.
            replaces = False
        record.tags = tuple(tags)
        return record

    def _refer(self, value: Any, record: ValueRecord, *, replaces: bool) -> None:
        key = id(value)
        known = self._alive.get(key)
        if not replaces and known is not None and known() is value:
            return
        try:
            reference = Reference(value, self._on_death)
        except TypeError:
            return
        reference.key, reference.record = key, record
        if record.ref is None:
            record.ref = reference
        if known is not None:
            # A record and the reference that carries it would keep each other.
            known.record.ref = None
        self._alive[key] = reference

    def _died(self, reference: Reference) -> None:
        if self._alive.get(reference.key) is reference:
            del self._alive[reference.key]
        reference.record.ref = None


def ancestry(value: ValueRecord, ends: frozenset[int] = frozenset()) -> dict[int, ValueRecord]:
    """What a value was made of, by id; what came before the records with the ids `ends` is left out."""
    found: dict[int, ValueRecord] = {}
    todo, makers = [value], set[int]()
    while todo:
        current = todo.pop()
        found[id(current)] = current
        if id(current) not in ends and current.maker is not None and id(current.maker) not in makers:
            makers.add(id(current.maker))
            todo += [read for read in current.maker.inputs if read is not None]
    return found


def arguments_behind(value: ValueRecord) -> frozenset[int]:
    """The numbers of the sources, of whatever question, that a value was made from."""
    return frozenset(r.argument for r in ancestry(value).values() if r.argument is not None)


def innermost(value: Any) -> Any:
    """The tracer that wraps no other one, or the array behind all of them."""
    while isinstance(value, jax.core.Tracer) and (kind := _INNER.get(type(value).__name__)):
        value = getattr(value, kind[0])
    return value


def _array_behind(value: Any) -> Any:
    """The array behind a value; None while there is none, for to keep a tracer is to leak it."""
    value = innermost(value)
    return None if isinstance(value, jax.core.Tracer) else value


def hide(problem: BaseException, *, frames: int = 1) -> None:
    """Take our own frames, the outermost of its traceback, from an exception that is about to be raised on as it came."""
    for _ in range(frames):
        place = problem.__traceback__
        problem.__traceback__ = place.tb_next if place is not None else None


def frames_of_traceback(raised: TracebackType | None) -> Frames:
    """The user's frames of an exception's traceback, innermost first."""
    found = []
    while raised is not None:
        if positions.is_user_code(raised.tb_frame.f_code):
            found.append((raised.tb_frame.f_code, raised.tb_lasti))
        raised = raised.tb_next
    return tuple(reversed(found))[:MOST_FRAMES]


def frames_of_stack(stack: Any) -> Frames:
    """The user's frames of JAX's own record of a stack, innermost first."""
    if stack is None:
        return ()
    codes, lastis = stack.raw_frames()
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
