"""Questions that PyTorch refuses: what the refusal means, and which sources it is about."""

from __future__ import annotations

import gc
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

import torch
from torch import Tensor
from torch.optim.optimizer import Optimizer

from gradwhy.backends.torch.asking import Pass
from gradwhy.backends.torch.gradient_functions import once_span
from gradwhy.backends.torch.lineage import ancestry
from gradwhy.backends.torch.ops import shown_name
from gradwhy.backends.torch.record import Recorder
from gradwhy.backends.torch.trail import Call, Tie
from gradwhy.flow import Failure

USED_UP = "used-up"
CHANGED = "changed-in-place"
ONCE = "once-differentiable"
NOT_RECORDED = "not-recorded"
SWITCHED_OFF = "switched-off"

# The wording of PyTorch 2.13 and of the releases before it.
_WORDS: tuple[tuple[str, str], ...] = (
    (r"backward through the graph a second time|saved intermediate values of the graph", USED_UP),
    (r"modified by an inplace operation", CHANGED),
    (r"leaf Variable that requires grad .*in-place", "leaf-in-place"),
    (r"[Oo]nly Tensors of floating point.* can require gradients", "integer"),
    (r"can't optimize a non-leaf Tensor", "not-a-leaf"),
    (r"optimizer got an empty parameter list", "nothing-to-train"),
    (r"grad can be implicitly created only for scalar outputs", "non-scalar-target"),
    (r"appears to not have been used in the graph", "unused"),
    (r"differentiate twice a function that was marked with @once_differentiable", ONCE),
    (r"derivative for .* is not implemented|does not support automatic differentiation", "no-gradient-registered"),
    (r"does not require grad", NOT_RECORDED),
)


def word_for(problem: BaseException) -> str | None:
    """A neutral word for what an exception of PyTorch's says."""
    message = str(problem)
    return next((word for pattern, word in _WORDS if re.search(pattern, message)), None)


def failure_of(problem: BaseException, passes: Iterable[Pass]) -> Failure:
    """An exception as a question carries it; `passes` are those that it refused."""
    named = re.search(r"derivative for '?(?:aten::)?(\w+)", str(problem))
    failure = Failure(type(problem).__name__, str(problem), word_for(problem), named.group(1) if named else None)
    if failure.kind == NOT_RECORDED and not torch.is_grad_enabled() and all(_is_unseen(passed) for passed in passes):
        return replace(failure, kind=SWITCHED_OFF)
    if failure.kind != ONCE:
        return failure
    for record in ancestry([target for passed in passes for target in passed.targets]):
        span = once_span(record.call) if record.call is not None and record.call.backward is not None else None
        if span is not None:
            return replace(failure, op=shown_name(record.call), span=span)  # type: ignore[arg-type]
    return failure


def _is_unseen(passed: Pass) -> bool:
    """Whether nothing is known of how the targets of a pass came about."""
    return all(target.unrecorded is not None for target in passed.targets)


def refused(inputs: tuple[Tensor, ...], leaves: Iterable[Tensor], problem: BaseException) -> tuple[Tensor, ...]:
    """The sources that a refused `autograd.grad` is about; `leaves` are those that autograd reaches."""
    reached = set(map(id, leaves))
    word = word_for(problem)
    if word == "unused":
        lost = tuple(t for t in inputs if t.requires_grad and t.grad_fn is None and id(t) not in reached)
        position = re.search(r"Tensor at index (\d+)", str(problem))
        if not lost and position and int(position.group(1)) < len(inputs):
            lost = (inputs[int(position.group(1))],)
        return lost or inputs
    if word == NOT_RECORDED:
        return tuple(t for t in inputs if not t.requires_grad) or inputs
    return inputs


def lost_leaves(recorder: Recorder, passed: Pass) -> tuple[Tensor, ...]:
    """The leaves that asked for a gradient and from which the targets of a refused pass were made; without one, what the
    program's optimizers hold."""
    wanted = {id(record) for record in ancestry(passed.targets) if record.requires_grad and record.watched is not None}
    keys = {key for key, entry in recorder.table.items() if id(entry.record) in wanted}
    found = [entry() for key, entry in recorder.table.items() if key in keys and isinstance(entry, Tie)]
    objects = gc.get_objects()
    # Nothing leads from a record back to a parameter, which must have no weak reference.
    found += [o for o in objects if id(o) in keys and isinstance(o, Tensor)]
    alive = {id(tensor): tensor for tensor in found if tensor is not None}
    if not alive:
        optimizers = [o for o in objects if issubclass(type(o), Optimizer)]
        held = [p for optimizer in optimizers for group in optimizer.param_groups for p in group["params"]]
        alive = {id(p): p for p in held if p.requires_grad} or {id(p): p for p in held}
    return recorder.in_order(alive.values() or _in_their_stead(recorder, passed, objects))


def _in_their_stead(recorder: Recorder, passed: Pass, objects: Iterable[object]) -> list[Tensor]:
    """What a refused pass is about where nothing that is alive asks for a gradient: parameters that ceased to, else the first
    value that was made from a leaf that is gone."""
    records = {id(record): record for record in ancestry(passed.targets)}
    known = {key: entry.record for key, entry in recorder.table.items() if id(entry.record) in records}
    frozen = {key for key, record in known.items() if record.is_parameter or record.was_watched}
    found = [o for o in objects if id(o) in frozen and isinstance(o, Tensor) and not o.requires_grad]
    if found:
        return found
    targets = set(map(id, passed.targets))
    ties = [entry for entry in recorder.table.values() if isinstance(entry, Tie)]
    alive = [tie for tie in ties if id(tie.record) in records and id(tie.record) not in targets]
    made = [tie for tie in alive if any(before.watched is not None for before in ancestry([tie.record]))]
    first = min(made, key=_time_of, default=None)
    tensor = first() if first is not None else None
    return [tensor] if tensor is not None else []


def _time_of(tie: Tie) -> int:
    return tie.record.call.time if tie.record.call is not None else 0


def earlier_pass(passes: Sequence[Pass], refused: Pass) -> Pass | None:
    """The last pass that ran through an op that the refused one needs, too."""
    needed = _recorded(refused)
    return next((passed for passed in reversed(passes) if needed & _recorded(passed)), None)


def _recorded(passed: Pass) -> set[Call]:
    return {record.call for record in ancestry(passed.targets) if record.call is not None and record.call.is_recorded}
