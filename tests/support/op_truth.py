"""What a tape says of every input of TensorFlow's raw ops: the truth that the backend's table of ops is measured by.

Most ops take what `made_up` tries: all real inputs of one shape, all whole numbers the same. The others have a call of their own.
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python.framework import dtypes, op_def_registry, ops

from gradwhy.backends.tensorflow.ops import Carried, Registry, carries
from op_calls import CALLS, Arguments, f, i, random_numbers, start_anew

REGISTRY = Registry(ops, op_def_registry)

_SHAPES = ((4,), (3, 3), (2, 3, 3), (1, 4, 4, 2), (), (1, 4, 4, 4, 2))
_WHOLE_NUMBERS = (0, 1, [0], [1], [0, 1], [1, 0], [[0, 0]], [[0], [1]], [3, 3], [2, 2])
_WANTED_TYPES = (dtypes.float32, dtypes.complex64, dtypes.int32, dtypes.int64, dtypes.bool)
_RENAMED = {"reduction_indices": "axis", "split_dim": "axis", "dim": "axis", "t": "x", "e": "y", "input": "condition"}
"""What the Python functions call an argument that the op calls otherwise."""
_MOST_TRIED, _MOST_BUILT = 400, 4


@dataclass(frozen=True, slots=True)
class Input:
    """One input of one call, to one output: whether a gradient arrived. `answer` is flows, none, zeros, error or whole."""

    position: int
    given: str
    output: int
    made: str
    count: int
    answer: str


def told(name: str, given: Input) -> Carried:
    """What the table says of an input, asked as the backend asks."""
    return carries(
        name,
        given.position,
        given=given.given,
        made=given.made,
        has_gradient=REGISTRY.has_gradient(name),
        is_whole=REGISTRY.is_whole(name, given.position, count=given.count),
        output=given.output,
    )


def is_real(dtype: Any) -> bool:
    return bool(dtype.is_floating or dtype.is_complex)


@cache
def inputs_of(name: str) -> tuple[Input, ...]:
    """What a tape says of every input of an op to every output; of several calls, the best. Empty: no call could be built."""
    start_anew()
    found: dict[tuple[int, str, int, str], Input] = {}
    calls = (CALLS[name]() for _ in range(2)) if name in CALLS else made_up(name)
    for number, arguments in enumerate(calls):
        try:
            answers = list(differentiated(name, arguments))
        except (tf.errors.OpError, ValueError, TypeError, RuntimeError, NotImplementedError):
            if name in CALLS:
                raise
            continue
        for given in answers:
            key = given.position, given.given, given.output, given.made
            if key not in found or given.answer == "flows":
                found[key] = given
        if number >= _MOST_BUILT or all(given.answer in ("flows", "whole") for given in found.values()):
            break
    return tuple(found.values())


def differentiated(name: str, arguments: Arguments) -> Iterator[Input]:
    """Call an op under a tape, and ask for the gradient of every output to every input."""
    definition = op_def_registry.get(name)
    function = getattr(tf.raw_ops, name)
    names = inspect.signature(function).parameters
    ordered = [arguments[_name_of(a.name, names)] for a in definition.input_arg]
    flat = [one for given in ordered for one in (given if isinstance(given, list) else [given])]
    with tf.GradientTape(persistent=True) as tape:
        tape.watch([given for given in flat if is_real(given.dtype)])
        handles = {k: v.handle if isinstance(v, tf.Variable) else v for k, v in arguments.items()}
        made = function(**handles)
        outputs = [part for part in tf.nest.flatten(made) if isinstance(part, tf.Tensor)]
        targets = [_weighted(output, tape) for output in outputs]
    for number, (output, target) in enumerate(zip(outputs, targets, strict=True)):
        for position, given in enumerate(flat):
            dtype = "" if isinstance(given, tf.Variable) else given.dtype.name
            answer = _asked(tape, target, given) if target is not None else "whole"
            yield Input(position, dtype, number, output.dtype.name, len(flat), answer)


def _weighted(output: Any, tape: tf.GradientTape) -> Any:
    """A target that no symmetry makes flat; None for whole numbers and the like."""
    if not is_real(output.dtype):
        return None
    with tape.stop_recording():
        weights = tf.cast(tf.constant(random_numbers.uniform(0.5, 1.5, size=output.shape)), output.dtype)
        if output.dtype.is_complex:
            weights *= tf.complex(1.0, 0.5)
    return output * weights


def _asked(tape: tf.GradientTape, target: Any, given: Any) -> str:
    if not is_real(given.dtype):
        return "whole"
    try:
        gradient = tape.gradient(target, given)
    except Exception:
        # Each of TensorFlow's gradient functions fails in its own way.
        return "error"
    if gradient is None:
        return "none"
    return "flows" if np.any(tf.convert_to_tensor(gradient).numpy()) else "zeros"


def made_up(name: str) -> Iterator[Arguments]:
    """Calls of an op with inputs made up from its definition; none for an op that reads a resource, a variant or a text."""
    definition, function = op_def_registry.get(name), getattr(tf.raw_ops, name, None)
    if function is None or any(a.type_list_attr or a.is_ref for a in definition.input_arg):
        return
    types = {a.name: _type_for(a) for a in definition.attr if a.type == "type"}
    wanted = [dtypes.as_dtype(a.type or types[a.type_attr]) for a in definition.input_arg]
    if any(t in (dtypes.resource, dtypes.variant, dtypes.string) for t in wanted):
        return
    attributes = {n: tried for n, tried in _attributes(definition, types) if tried is not None}
    whole = sum(not is_real(t) for t in wanted)
    names = inspect.signature(function).parameters
    tried = itertools.product(
        _SHAPES,
        itertools.product(_WHOLE_NUMBERS, repeat=min(whole, 2)),
        *[[(key, value) for value in values] for key, values in attributes.items()],
    )
    for shape, numbers, *given in itertools.islice(tried, _MOST_TRIED):
        arguments = dict(given)
        left = list(numbers)
        for argument, dtype in zip(definition.input_arg, wanted, strict=True):
            if not is_real(dtype) and len(left) > 1:
                value = left.pop(0)
            else:
                value = left[0] if left else 0
            try:
                made = [f(*shape, dtype=dtype) if is_real(dtype) else tf.cast(i(value), dtype) for _ in range(2)]
            except (TypeError, ValueError, tf.errors.OpError):
                return
            arguments[_name_of(argument.name, names)] = made if argument.number_attr else made[0]
        yield arguments


def _name_of(argument: str, names: Any) -> str:
    return argument if argument in names else _RENAMED.get(argument, argument)


def _type_for(attribute: Any) -> int:
    """The dtype that is tried: that of indices and the like where there is one, else a real one where it is allowed."""
    allowed = list(attribute.allowed_values.list.type)
    if attribute.default_value.type and all(not is_real(dtypes.as_dtype(t)) for t in allowed):
        return int(attribute.default_value.type)
    wanted = (t.as_datatype_enum for t in _WANTED_TYPES)
    return int(next((t for t in wanted if not allowed or t in allowed), allowed[0] if allowed else 1))


def _attributes(definition: Any, types: dict[str, int]) -> Iterator[tuple[str, list[Any] | None]]:
    """What is tried for each attribute that neither the inputs nor a default give."""
    given = {name for a in definition.input_arg for name in (a.type_attr, a.number_attr)}
    for attribute in definition.attr:
        if attribute.name in given or attribute.HasField("default_value"):
            continue
        named = [text.decode() for text in attribute.allowed_values.list.s] or [""]
        tried: dict[str, list[Any]] = {
            "type": [dtypes.as_dtype(types.get(attribute.name, 1))],
            "int": [1, 2],
            "float": [0.5],
            "bool": [False],
            "shape": [[2]],
            "string": named[:1],
            "list(int)": [[1, 2, 2, 1], [1, 1, 1, 1], [1, 2, 2, 2, 1]],
        }
        yield attribute.name, tried.get(attribute.type)
