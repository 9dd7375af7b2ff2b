"""The ops inside an op: the bodies of compiled functions, loops and branches, drawn where the op stands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from gradwhy.backends.jax import ops
from gradwhy.backends.jax.record import Frames, frames_of_stack
from gradwhy.flow import Barrier, Passage

Number = int | None
"""A value's number in the flow graph; None for a constant, which nothing leads to."""


class Sheet(Protocol):
    """What is drawn on: values and ops of a flow graph."""

    def new_value(self, aval: Any) -> int: ...

    def new_op(
        self,
        name: str,
        inputs: Sequence[tuple[int, ops.Edge]],
        outputs: Sequence[int],
        frames: Frames,
        primitive: str = "",
    ) -> None: ...

    def constant(self, value: Any, frames: Frames) -> Number: ...

    @property
    def is_forward(self) -> bool: ...


def draw(
    sheet: Sheet,
    name: str,
    params: dict[str, Any],
    inputs: Sequence[tuple[Number, Any]],
    made: Sequence[Any],
    frames: Frames,
) -> tuple[int, ...]:
    """Draw one bound primitive, what is inside it included, and give the values it makes.

    `inputs` are the values it read with their avals, `made` the avals of what it made.
    """
    numbers = [number for number, _ in inputs]
    if name == "scan":
        return _draw_scan(sheet, params, numbers, made, frames)
    if name == "cond":
        return _draw_cond(sheet, params, numbers, made, frames)
    body = _body(name, params, len(inputs), len(made))
    if body is not None:
        return _filled(sheet, _draw_body(sheet, body, numbers, frames), made)
    return draw_whole(sheet, name, params, inputs, made, frames)


def draw_whole(
    sheet: Sheet,
    name: str,
    params: dict[str, Any],
    inputs: Sequence[tuple[Number, Any]],
    made: Sequence[Any],
    frames: Frames,
    *,
    is_dropped: Sequence[bool] = (),
) -> tuple[int, ...]:
    """Draw a primitive as one op, or as one for each kind of output: an edge of the flow graph leads to all outputs alike.

    `is_dropped` says for which outputs JAX was seen to keep no derivative.
    """
    shown = _shown_name(name, params)
    outputs = tuple(sheet.new_value(aval) for aval in made)
    read = ops.dtypes_of([aval for _, aval in inputs])
    alike: dict[tuple[ops.Edge, ...], list[int]] = {}
    for index, dtype in enumerate(ops.dtypes_of(made)):
        edges = tuple(ops.passage(name, i, r, dtype, is_forward=sheet.is_forward) for i, r in enumerate(read))
        if index < len(is_dropped) and is_dropped[index]:
            edges = tuple(ops.dropped(name, edge) for edge in edges)
        alike.setdefault(edges, []).append(outputs[index])
    for edges, same in alike.items():
        known = [(number, edge) for (number, _), edge in zip(inputs, edges, strict=True) if number is not None]
        sheet.new_op(shown, known, same, frames, name)
    return outputs


def _shown_name(name: str, params: dict[str, Any]) -> str:
    """The function's own name for an op that stands for a function with a derivative rule of its own."""
    if not ops.is_custom(name):
        return name
    called = params.get("call_jaxpr") or next(iter(params.get("subfuns", ())), None)
    described = getattr(getattr(called, "jaxpr", called), "debug_info", None)
    return str(getattr(described, "func_name", "") or name)


def _body(name: str, params: dict[str, Any], reads: int, makes: int) -> Any:
    """The jaxpr of a primitive that only calls it with its inputs; None for any other primitive."""
    if ops.is_custom(name) or name == "while":
        return None
    bodies = [p for p in params.values() if hasattr(getattr(p, "jaxpr", p), "eqns")]
    if len(bodies) != 1:
        return None
    body = getattr(bodies[0], "jaxpr", bodies[0])
    return bodies[0] if len(body.invars) == reads and len(body.outvars) == makes else None


def _draw_body(sheet: Sheet, closed: Any, inputs: Sequence[Number], outer: Frames) -> tuple[Number, ...]:
    body = getattr(closed, "jaxpr", closed)
    known: dict[Any, Number] = dict(zip(body.invars, inputs, strict=True))
    held: dict[Any, Any] = dict(zip(body.constvars, getattr(closed, "consts", ()), strict=False))

    def number(atom: Any, frames: Frames) -> Number:
        if hasattr(atom, "val"):
            return sheet.constant(atom.val, frames)
        return sheet.constant(held[atom], frames) if atom in held else known.get(atom)

    for equation in body.eqns:
        frames = _joined(frames_of_stack(equation.source_info.traceback), outer)
        read = [(number(atom, frames), atom.aval) for atom in equation.invars]
        made = [variable.aval for variable in equation.outvars]
        if all(n is None for n, _ in read):
            continue
        outputs = draw(sheet, equation.primitive.name, equation.params, read, made, frames)
        known.update(zip(equation.outvars, outputs, strict=True))
    return tuple(number(atom, outer) for atom in body.outvars)


def _joined(inner: Frames, outer: Frames) -> Frames:
    """The frames of an op in a body: its own, then those of the call, unless its own lead up to there already."""
    if not inner or not outer:
        return inner or outer
    return inner if any(code is outer[-1][0] for code, _ in inner) else inner + outer


def _draw_scan(
    sheet: Sheet, params: dict[str, Any], inputs: Sequence[Number], made: Sequence[Any], frames: Frames
) -> tuple[int, ...]:
    """A loop drawn once: what it carries enters from before the loop and from the end of its own body."""
    constants, carried = params["num_consts"], params["num_carry"]
    body = params["jaxpr"]
    first = inputs[constants : constants + carried]
    carry = [sheet.new_value(v.aval) for v in body.jaxpr.invars[constants : constants + carried]]
    last = _draw_body(sheet, body, [*inputs[:constants], *carry, *inputs[constants + carried :]], frames)
    for value, *entering in zip(carry, first, last, strict=False):
        known = [(number, ops.FLOWS) for number in entering if number is not None and number != value]
        sheet.new_op("scan", known, [value], frames)
    return _filled(sheet, last, made)


def _draw_cond(
    sheet: Sheet, params: dict[str, Any], inputs: Sequence[Number], made: Sequence[Any], frames: Frames
) -> tuple[int, ...]:
    chosen = [_draw_body(sheet, branch, inputs[1:], frames) for branch in params["branches"]]
    outputs = tuple(sheet.new_value(aval) for aval in made)
    condition = [] if inputs[0] is None else [(inputs[0], (Passage.NOTHING, Barrier.INTEGER))]
    for output, *results in zip(outputs, *chosen, strict=True):
        known = [(number, ops.FLOWS) for number in dict.fromkeys(results) if number is not None]
        sheet.new_op("cond", [*condition, *known], [output], frames)
    return outputs


def _filled(sheet: Sheet, outputs: Sequence[Number], made: Sequence[Any]) -> tuple[int, ...]:
    """The outputs, with values of their own for those that are constants."""
    return tuple(
        sheet.new_value(aval) if number is None else number for number, aval in zip(outputs, made, strict=True)
    )
