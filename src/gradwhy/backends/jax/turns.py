"""Where a gradient turned zero, or stopped being a number, on its way back."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from gradwhy.backends.jax import ops
from gradwhy.backends.jax.drawing import Draft, Drawing, Turn
from gradwhy.backends.jax.record import Frames, OpRecord, ValueRecord, frames_of_stack, innermost
from gradwhy.flow import Barrier, Passage, Status


def concrete(value: Any) -> Any:
    """The array behind a value; None where there is none yet, or it cannot be read here."""
    value = innermost(value)
    if isinstance(value, jax.core.Tracer):
        return None
    if isinstance(value, jax.Array) and (value.is_deleted() or not value.is_fully_addressable):
        return None
    return value


def status_of(value: Any) -> Status | None:
    """What the numbers of a gradient say: ok, zero or not finite; None where there are none to look at."""
    value = concrete(value)
    if value is None or not hasattr(value, "dtype") or not ops.is_differentiable(str(value.dtype)):
        return None
    numbers = np.asarray(value)
    if numbers.size == 0:
        return Status.OK
    with np.errstate(all="ignore"):
        if numbers.dtype in (np.float32, np.float64):
            # One pass, and no array of its own; only what it cannot decide is looked at again.
            square = float(np.vdot(numbers, numbers))
            if square != 0 and math.isfinite(square):
                return Status.OK
        if not np.isfinite(numbers).all():
            return Status.NAN
        return Status.OK if numbers.any() else Status.ZERO


@dataclass(frozen=True, slots=True)
class _Turned:
    """An op of the backward pass at which the gradient turned.

    `is_dropped` says that it was made of nothing that came in; there is no op where JAX itself put a zero in its place.
    """

    op: OpRecord | None
    is_dropped: bool


class Backward:
    """The backward pass of one question. `seeds` are the gradients of the target that it began with."""

    def __init__(self, seeds: Iterable[ValueRecord], passed: list[OpRecord]) -> None:
        self._depends: dict[int, bool] = {}
        self._seeds = {id(s) for s in seeds}
        self._own = {id(op) for op in passed}
        self._first = passed[0] if passed and not self._seeds else None
        # Without an op that follows from the seed it is not known which value the seed was.
        self.is_known = bool(self._seeds) or any(self._op_depends(op) for op in passed[1:])

    def depends(self, value: ValueRecord) -> bool:
        """Whether a gradient was made of what came from the target, as far as is known."""
        if id(value) in self._seeds or value.is_unseen:
            return True
        return value.maker is not None and (value.maker is self._first or self._op_depends(value.maker))

    def turned(self, gradient: ValueRecord | None, bad: Status) -> list[_Turned]:
        """The ops, seen from the target the first, at which the way to `gradient` turned `bad`.

        A gradient that no op made, and that was not there before, is None.
        """
        if not self.is_known:
            return []
        if gradient is None or not self.depends(gradient):
            # A rule that gives zeros is the cut; whatever else it gives was made of something.
            if bad is not Status.ZERO:
                return []
            return [_Turned(gradient.maker if gradient else None, True)]
        found, seen, todo = [], set(), [gradient]
        while todo:
            op = todo.pop().maker
            if op is None or id(op) not in self._own or id(op) in seen:
                continue
            seen.add(id(op))
            live = self._live(op)
            worse = [i for i in live if status_of(i.held) is bad]
            behind = [i for i in worse if i.maker is not None and id(i.maker) in self._own]
            todo += behind
            if not behind and any(status_of(i.held) not in (bad, None) for i in live):
                found.append(_Turned(op, False))
        return found

    def _live(self, op: OpRecord) -> list[ValueRecord]:
        """The gradients that an op of the backward pass reads.

        What was seen to come from the target is one. Of values that no primitive was seen to make some are gradients and
        some were left by the forward pass, so they count where there is nothing better.
        """
        read = [i for i in op.inputs if i is not None and ops.is_differentiable(str(i.aval.dtype))]
        seen = [i for i in read if not i.is_unseen and self.depends(i)]
        return seen or [i for i in read if i.is_unseen]

    def _op_depends(self, op: OpRecord) -> bool:
        todo = [op]
        while todo:
            current = todo[-1]
            if id(current) in self._depends:
                todo.pop()
                continue
            makers = [m for i in current.inputs if i is not None and (m := i.maker) is not None and id(m) in self._own]
            missing = [m for m in makers if id(m) not in self._depends and m is not self._first]
            if missing:
                todo += missing
                continue
            todo.pop()
            seeded = any(i is not None and (id(i) in self._seeds or i.is_unseen) for i in current.inputs)
            self._depends[id(current)] = seeded or any(m is self._first or self._depends[id(m)] for m in makers)
        return self._depends[id(op)]


def turns(
    drawing: Drawing, backward: Backward, gradient: ValueRecord | None, bad: Status, source: int, targets: set[int]
) -> list[Turn]:
    """What the backward pass shows about the edges between `source` and the targets of a drawing."""
    near = drawing.reached([source])
    if not near & targets:
        return []
    found = []
    for turned in backward.turned(gradient, bad):
        draft = _custom_at(drawing, turned.op, near) if turned.is_dropped else _draft_at(drawing, turned.op, near)
        if draft is None:
            continue
        frames = turned.op.frames if turned.is_dropped and turned.op else ()
        barrier = Barrier.NOT_FINITE if bad is Status.NAN else Barrier.FLAT
        edge = (Passage.CUT, Barrier.CUSTOM if turned.is_dropped else barrier)
        at = frames if _is_elsewhere(frames, draft.frames) else ()
        found.append(Turn(draft.order, frozenset(v for v, _ in draft.inputs if v in near), edge, at))
    return found


def _draft_at(drawing: Drawing, op: OpRecord | None, near: set[int]) -> Draft | None:
    """The op of the forward pass to which an op of the backward pass belongs, the nearest to the target."""
    origin = frames_of_stack(op.origin) if op else ()
    candidates = [d for d in drawing.drafts if d.frames and any(v in near for v, _ in d.inputs)]
    if exact := [d for d in candidates if origin and d.frames[0] == origin[0]]:
        return max(exact, key=lambda d: (d.time, d.order))
    # Of a function that the user compiled only the call is known.
    around = [d for d in candidates if origin and origin[0] in d.frames]
    return around[0] if len({d.frames[0] for d in around}) == 1 else None


def _custom_at(drawing: Drawing, op: OpRecord | None, near: set[int]) -> Draft | None:
    """The function with a rule of its own that dropped a gradient: the one that `op` belongs to, or the only one."""
    origin = frames_of_stack(op.origin) if op else ()
    customs = [d for d in drawing.drafts if ops.is_custom(d.primitive) and any(v in near for v, _ in d.inputs)]
    exact = [d for d in customs if origin and d.frames[:1] == origin[:1]]
    found = exact or customs
    return found[-1] if len({d.frames[:1] for d in found}) == 1 else None


def _is_elsewhere(frames: Frames, forward: Frames) -> bool:
    """Whether an op of the backward pass ran in a function of the user's that the forward pass did not run there."""
    return bool(frames) and not any(code is frames[0][0] for code, _ in forward)
