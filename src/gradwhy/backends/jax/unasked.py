"""Arrays that a question leaves out although the program reads its answer for them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import jax

from gradwhy.backends.jax import definitions, describe, ops, reading
from gradwhy.backends.jax.asking import Asking
from gradwhy.backends.jax.record import ValueRecord
from gradwhy.flow import SourceFact

MOST_UNASKED = 64


@dataclass(frozen=True, slots=True)
class Unasked:
    """An array that nobody differentiates with respect to: its name, its record, and what is known of it."""

    path: str
    record: ValueRecord | None
    fact: SourceFact


@dataclass(frozen=True, slots=True)
class _Candidate:
    path: str
    value: Any
    fact: SourceFact
    argument: int | None = None


def of(asking: Asking) -> tuple[Unasked, ...]:
    """What the question leaves out, and its target uses, and the program looks for in the answer."""
    if not asking.args:
        # What waits for the program to pull it back has let go of its arguments.
        return ()
    candidates = [c for c in _candidates(asking) if asking.recorder.of(c.value) is not None]
    if not candidates or not asking.frames or len(candidates) > MOST_UNASKED:
        return ()
    kind = asking.manner.kind
    # Flax has something of its own come back beside the target.
    has_aux = bool(getattr(asking.fun, "has_aux", asking.manner.has_aux))
    read = reading.of_answer(asking.frames[0], has_value=kind == "jax.value_and_grad", has_aux=has_aux)
    found = []
    for candidate in candidates:
        record = asking.recorder.of(candidate.value)
        if record is not None and _is_wanted(candidate, read):
            found.append(Unasked(candidate.path, record, candidate.fact))
    return tuple(found)


def _is_wanted(candidate: _Candidate, read: reading.Reading) -> bool:
    name, keys = definitions.keys_of(candidate.path)
    if candidate.argument is None:
        return read.looks_up(keys)
    passed = read.arguments[candidate.argument] if candidate.argument < len(read.arguments) else name
    return read.is_for(name) or read.is_for(passed)


def _candidates(asking: Asking) -> Iterator[_Candidate]:
    yield from _left_empty(asking)
    yield from _of_other_kind(asking)
    if (
        asking.manner.kind in ("jax.grad", "jax.value_and_grad")
        and len(asking.argnums) == 1
        and len(asking.arrays) == 1
    ):
        parameters = describe.parameters(asking.fun, len(asking.args))
        for number, value in enumerate(asking.args):
            if number not in asking.argnums and _is_float(value):
                name = parameters[number]
                yield _Candidate(name, value, SourceFact.NOT_ASKED, number)


def _left_empty(asking: Asking) -> Iterator[_Candidate]:
    """The arrays of an argument that stand where a differentiated one of the same make has `None`."""
    others = [a for n, a in enumerate(asking.args) if n not in asking.argnums]
    parameters = describe.parameters(asking.fun, len(asking.args))
    for number in asking.argnums:
        asked = asking.args[number]
        if isinstance(asked, jax.Array) or asked is None:
            continue
        empty = {
            jax.tree_util.keystr(path): path
            for path, leaf in jax.tree_util.tree_flatten_with_path(asked, is_leaf=lambda part: part is None)[0]
            if leaf is None
        }
        for other in others if empty else ():
            if type(other) is not type(asked):
                continue
            for path, leaf in jax.tree_util.tree_flatten_with_path(other)[0]:
                text = jax.tree_util.keystr(path)
                if text in empty and _is_float(leaf):
                    yield _Candidate(parameters[number] + text, leaf, SourceFact.FROZEN)


def _of_other_kind(asking: Asking) -> Iterator[_Candidate]:
    """The variables of a Flax NNX module that are no parameters, or that the question was told to pass over."""
    names = describe.parameters(asking.fun, len(asking.args))
    for number, path, array, is_parameter in asking.left_out:
        if _is_float(array):
            fact = SourceFact.FROZEN if is_parameter else SourceFact.UNKNOWN_TO_MODEL
            yield _Candidate(names[number] + path, array, fact)


def _is_float(value: Any) -> bool:
    return isinstance(value, jax.Array) and ops.is_differentiable(str(value.dtype))
