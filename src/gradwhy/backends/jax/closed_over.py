"""What the function used in an argument's stead: the array itself, or a value made of it before it was called."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from gradwhy.backends.jax import definitions, describe, ops
from gradwhy.backends.jax.asking import Asking
from gradwhy.backends.jax.definitions import Key
from gradwhy.backends.jax.drawing import Drawing
from gradwhy.backends.jax.record import Frames, ValueRecord, ancestry
from gradwhy.backends.jax.turns import concrete
from gradwhy.flow import Barrier, Passage, Source, Span
from gradwhy.source import locate, names

_CARRIES_ON = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Return)
_COPIED: ops.Edge = (Passage.CUT, Barrier.NEW_OBJECT)


@dataclass(frozen=True, slots=True)
class StandIn:
    """What was used: the user's name for it, where it was put in the argument's stead, and where its path begins.

    `kind` says how it is known: `same-object`, `same-name`, `same-values`, or `made-before` of the argument;
    `to-host` and `nondiff` where it left on the way, `leaked` where an earlier call made it, `stale` where it is a state as it was before the argument had its part in it.
    """

    name: str
    span: Span | None
    value: int | None
    kind: str


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
            return self._read(source.name, array, "same-object")
        found = self._handed_over(i) or self._kept_before(i) or self._older(i)
        if found is not None:
            return found
        for constant, frames in drawing.constants.values():
            value = concrete(constant.value)
            if value is not None and frames and ops.is_differentiable(describe.dtype(value)):
                found = self._inferred(drawing.number(constant), value, frames, i, source)
                if found is not None:
                    return found
        return None

    def _handed_over(self, i: int) -> StandIn | None:
        """Where what was made of the argument went on as a plain number, or as a setting of a function with a rule."""
        drawing, tracer = self._drawing, self._asking.tracers[i]
        assert tracer is not None
        for record, frames, kind in drawing.stretch.exits:
            number = drawing.number(record)
            if number not in drawing.reached([drawing.number(tracer)], flowing=False):
                continue
            places = drawing.places(frames[:1])
            statement = locate.statement_at(places[0].span) if places else None
            # A number that is only shown, or that a branch hangs on, is no part of the target.
            if isinstance(statement, _CARRIES_ON) or kind == "nondiff":
                span = places[0].span if places else None
                call = locate.call_at(span) if span is not None else None
                return StandIn(ast.unparse(call.func) if call is not None else "float", span, None, kind)
        return None

    def _kept_before(self, i: int) -> StandIn | None:
        """A value that an earlier call made of the same argument, and that was kept until now."""
        own = frozenset(id(t) for t in self._asking.tracers if t is not None)
        for constant, frames in tuple(self._drawing.constants.values()):
            behind = ancestry(constant, own)
            if any(r.argument == i and id(r) not in own for r in behind.values()) and frames:
                places = self._drawing.places(frames[:1])
                name, _ = self._index.of(constant.value)
                return StandIn(name or "=", places[0].span if places else None, None, "leaked")
        return None

    def _older(self, i: int) -> StandIn | None:
        """The state as it was, read by the target after the source was made part of what that state is to be."""
        asking, drawing, tracer = self._asking, self._drawing, self._asking.tracers[i]
        read = tuple(drawing.constants.values())
        for path, written in asking.aux:
            number = drawing.number(written)
            if tracer is None or number not in drawing.reached([drawing.number(tracer)], flowing=False):
                continue
            made_of = ancestry(written)
            for state, frames in read:
                name, aliases = self._index.of(state.value)
                names = (*asking.names_of(state.value), name, *aliases)
                is_same = _is_same_state(path, names) if _tail(path) else id(state) in made_of and len(read) == 1
                if is_same and _have_one_form(state.aval, written.aval) and self._is_read_later(state, written):
                    return StandIn(next(filter(None, names), "="), self._place_in_function(frames), None, "stale")
        return None

    def _is_read_later(self, state: ValueRecord, written: ValueRecord) -> bool:
        """Whether the target reads a state after the state that is to follow it was made."""
        number, targets = self._drawing.number(state), self._targets
        readers = [d for d in self._drawing.drafts if any(v == number for v, _ in d.inputs)]
        last = [d.time for d in readers if targets & self._drawing.reached(d.outputs, flowing=False)]
        return bool(last) and written.maker is not None and max(last) >= written.maker.time

    def _place_in_function(self, frames: Frames) -> Span | None:
        """Where the differentiated function itself stands in `frames`, else the innermost of them."""
        own = getattr(describe.users_function(self._asking.fun), "__code__", None)
        places = self._drawing.places(tuple(f for f in frames if f[0] is own)[-1:] or frames[:1])
        return places[0].span if places else None

    def _inferred(self, number: int, value: Any, read_at: Frames, i: int, source: Source) -> StandIn | None:
        """A value that entered the function as a constant, if its name, its history or its numbers are the source's."""
        name, aliases = self._index.of(value)
        known, wanted = (name, *aliases), {source.name, *source.aliases}
        argument = self._asking.values()[i]
        if isinstance(argument, jax.core.Tracer) and _are_alike(value, argument) and _are_twins(known, wanted):
            # While a function is compiled, its arguments are not the caller's arrays: only the name tells.
            return self._read(name, number, "same-name")
        array = self._drawing.number(self._asking.leaves[i])
        for expression in filter(None, known):
            for reader in (read_at[0], *self._asking.frames[:1]):
                made = describe.definition(expression, reader)
                if made is not None and describe.is_made_of(made, wanted, reader):
                    self._drawing.infer(made.what, (array, ops.FLOWS), number, made.place)
                    return StandIn(name, made.statement, array, "made-before")
        if _are_equal(value, argument):
            place = self._drawing.places(read_at)[0]
            self._drawing.infer("copy", (array, _COPIED), number, place)
            return StandIn(name or source.name, place.span, array, "same-values")
        return None

    def _read(self, name: str, value: int, kind: str) -> StandIn:
        reader = next(d for d in self._drawing.drafts if any(v == value for v, _ in d.inputs))
        places = self._drawing.places(reader.frames)
        return StandIn(name, places[0].span if places else None, value, kind)


def _tail(path: str) -> Key | None:
    _, keys = definitions.keys_of("_" + path)
    return keys[-1] if keys else None


def _is_same_state(path: str, names: Iterable[str]) -> bool:
    """Whether one of a state's names ends as the path of what is returned does."""
    return any(name and _tail(re.sub(r"^\w+", "", name)) == _tail(path) for name in names)


def _have_one_form(one: Any, other: Any) -> bool:
    return (one.shape, str(one.dtype)) == (other.shape, str(other.dtype))


def _are_alike(value: Any, argument: Any) -> bool:
    return getattr(value, "shape", None) == argument.shape and describe.dtype(value) == describe.dtype(argument)


def _are_twins(known: tuple[str, ...], wanted: set[str]) -> bool:
    """Whether an object's names say that it is what an argument is called: `self.params['w']` for `params['w']`."""
    return any(k == w or k.endswith(f".{w}") for k in known if k for w in wanted)


def _are_equal(value: Any, argument: Any) -> bool:
    """Whether two arrays have the same numbers, and these are no common ones such as zeros and ones."""
    argument = concrete(argument)
    if argument is None or not hasattr(argument, "shape") or not _are_alike(value, argument):
        return False
    numbers = np.asarray(value)
    is_common = numbers.size == 0 or bool(np.isin(numbers, (0, 1, -1)).all())
    return not is_common and bool(np.array_equal(numbers, np.asarray(argument)))
