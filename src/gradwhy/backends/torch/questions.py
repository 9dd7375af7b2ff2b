"""The questions that a program asks PyTorch: backward passes, `autograd.grad`, reads of `.grad`, steps of an optimizer."""

from __future__ import annotations

import sys
import threading
import weakref
from collections.abc import Hashable, Iterable
from types import FrameType
from typing import Any

import torch
from torch import Tensor
from torch.optim.optimizer import Optimizer, register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from gradwhy.backends.contract import Answer, Witness
from gradwhy.backends.patches import Hooks, standing
from gradwhy.backends.torch import describe, failures, look, ops
from gradwhy.backends.torch.asking import BACKWARD, GRAD, READ, STEP, Asking, Pass
from gradwhy.backends.torch.attention import Attention
from gradwhy.backends.torch.guards import is_guarded
from gradwhy.backends.torch.mode import ModeSwitch, without_dispatch
from gradwhy.backends.torch.record import MOST_FRAMES, Recorder
from gradwhy.backends.torch.trail import Frames, Tie
from gradwhy.flow import Status
from gradwhy.source.positions import is_user_code, user_frames

MOST_PASSES = 8
_NESTED = object()


class Begun:
    """A backward pass that has begun: its targets, the leaves that autograd reaches, and the look at it."""

    __slots__ = ("frame", "inputs", "leaves", "look", "passed")

    def __init__(self, passed: Pass, frame: FrameType | None, inputs: tuple[Tensor, ...], leaves: list[Tensor]) -> None:
        self.passed = passed
        self.frame = frame
        self.inputs = inputs
        self.leaves = leaves
        self.look = passed.look


class Questions:
    """Watches every question of one thread."""

    def __init__(self, hooks: Hooks, recorder: Recorder, switch: ModeSwitch, witness: Witness) -> None:
        self._hooks = hooks
        self._recorder = recorder
        self._switch = switch
        self._witness = witness
        self._attention = Attention()
        self._passes: list[Pass] = []
        self._depth = 0
        self._told: set[int] = set()
        self._steps: weakref.WeakKeyDictionary[Optimizer, int] = weakref.WeakKeyDictionary()
        self._suspended: set[int] = set()

    def open(self) -> None:
        """Put every hook in place."""
        hooks = self._hooks
        autograd = torch.autograd
        hooks.wrap(
            autograd,
            "backward",
            "torch.backward",
            before=self._before_backward,
            after=self._after_backward,
            raised=self._backward_raised,
            stands_in=True,
            tidy=without_dispatch,
        )
        hooks.wrap(
            autograd,
            "grad",
            "torch.grad",
            before=self._before_grad,
            after=self._after_grad,
            raised=self._grad_raised,
            stands_in=True,
            tidy=without_dispatch,
        )
        # Nothing is asked here; but only here can its tracebacks be kept what they are.
        hooks.wrap(Tensor, "backward", "torch.Tensor.backward", stands_in=True, tidy=without_dispatch)
        before = hooks.guarded("torch.optimizer.before", self._before_step)
        after = hooks.guarded("torch.optimizer.after", self._after_step)
        hooks.add(standing("optimizer_step_pre_hook", register_optimizer_step_pre_hook(before).remove))
        hooks.add(standing("optimizer_step_post_hook", register_optimizer_step_post_hook(after).remove))
        special = self._recorder.special
        special[ops.GET_GRAD] = self._read
        special[ops.SET_GRAD] = self._cleared
        special.update(dict.fromkeys((Tensor.backward, autograd.backward, autograd.grad), _pass))

    # Backward passes

    @property
    def _is_elsewhere(self) -> bool:
        return threading.get_ident() != self._recorder.thread or not self._switch.is_watching

    def _begin(self, kind: str, tensors: Any, inputs: Any) -> Begun | object | None:
        """A question begins; one inside another, as a checkpoint asks it, is none of its own."""
        if not self._depth:
            self._resume_after_failed_step()
        if self._is_elsewhere:
            return None
        self._depth += 1
        if self._depth > 1:
            return _NESTED
        frame = sys._getframe(3)
        frames = user_frames(frame, MOST_FRAMES)
        with torch._C.DisableTorchFunction():
            targets = _tensors(tensors)
            nodes = [target.grad_fn for target in targets if target.requires_grad]
            can_look = look.can_look()
            seen = look.Look() if can_look and self._attention.is_first(_key(kind, frames)) else None
            if seen is not None:
                seen.arm(nodes)
                leaves = seen.leaves
            else:
                leaves = look.leaves_of(nodes)
            leaves += [target for target in targets if target.requires_grad and target.grad_fn is None]
            records = tuple(self._recorder.of(target) for target in targets)
            entries = [self._recorder.table.get(id(target)) for target in targets]
        ties = tuple(entry if isinstance(entry, Tie) else None for entry in entries)
        passed = Pass(next(self._recorder.clock), records, ties, frames, seen)
        return Begun(passed, frame, _tensors(inputs), leaves)

    def _end(self, begun: Any) -> Begun | None:
        """The question has ended; what began it is given back, unless it was inside another."""
        if begun is not None:
            self._depth -= 1
        if not isinstance(begun, Begun):
            return None
        if begun.look is not None:
            begun.look.disarm()
        return begun

    def _before_backward(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return self._begin(BACKWARD, args[0] if args else kwargs.get("tensors"), kwargs.get("inputs"))

    def _after_backward(self, token: Any, result: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        begun = self._end(token)
        if begun is None:
            return
        sources = begun.inputs or self._known(begun.leaves)
        with torch._C.DisableTorchFunction():
            answers = tuple((source, self._status_of_leaf(source, begun)) for source in sources)
        # What was not reached was not asked for: an optimizer or a read of `.grad` will ask.
        found = answers if begun.inputs else tuple(pair for pair in answers if pair[1] is not Status.NONE)
        asking = Asking(BACKWARD, begun.passed.time, begun.passed.frames, begun.frame, (begun.passed,), found)
        self._answer(asking, is_pass=True)
        self._note_pass(begun.passed)

    def _known(self, leaves: list[Tensor]) -> tuple[Tensor, ...]:
        """The leaves that the program itself has used; autograd makes some of its own."""
        return tuple(leaf for leaf in _distinct(leaves) if self._recorder.known(leaf) is not None)

    def _status_of_leaf(self, leaf: Tensor, begun: Begun) -> Status:
        if begun.look is not None and id(leaf) in begun.look.received:
            return begun.look.received[id(leaf)]
        gradient = leaf.grad
        return look.status_of(gradient) if look.can_look() else _presence(gradient)

    def _backward_raised(
        self, token: Any, problem: BaseException, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        begun = self._end(token)
        if begun is None:
            return
        sources = begun.inputs or self._known(begun.leaves) or failures.lost_leaves(self._recorder, begun.passed)
        self._answer_failure(BACKWARD, begun, sources, problem)

    # autograd.grad

    def _before_grad(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        outputs = args[0] if args else kwargs.get("outputs")
        return self._begin(GRAD, outputs, args[1] if len(args) > 1 else kwargs.get("inputs"))

    def _after_grad(self, token: Any, result: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        begun = self._end(token)
        if begun is None:
            return
        gradients = list(result) if isinstance(result, (tuple, list)) else list(dict(result).values())
        with torch._C.DisableTorchFunction():
            can_look = look.can_look()
            statuses = [look.status_of(g) if can_look else _presence(g) for g in gradients]
            self._note_gradients(begun, gradients)
        sources = tuple(zip(begun.inputs, statuses, strict=False))
        asking = Asking(GRAD, begun.passed.time, begun.passed.frames, begun.frame, (begun.passed,), sources)
        self._answer(asking, is_pass=True)
        self._recorder.question_answered()

    def _note_gradients(self, begun: Begun, gradients: list[Any]) -> None:
        """The gradients are values like others: with `create_graph` they carry gradients of their own."""
        targets = tuple(tensor for tensor in begun.passed.tensors() if tensor is not None)
        call = self._recorder.call(ops.GRADIENT, (*targets, *begun.inputs), None, begun.frame)
        for index, gradient in enumerate(gradients):
            if isinstance(gradient, Tensor):
                self._recorder.born(gradient, call, index)

    def _grad_raised(self, token: Any, problem: BaseException, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        begun = self._end(token)
        if begun is None:
            return
        with torch._C.DisableTorchFunction():
            lost = failures.refused(begun.inputs, begun.leaves, problem)
        self._answer_failure(GRAD, begun, lost, problem)

    def _answer_failure(self, kind: str, begun: Begun, sources: Iterable[Tensor], problem: BaseException) -> None:
        passed = begun.passed
        pairs = tuple((source, Status.ERROR) for source in sources)
        earlier = (
            failures.earlier_pass(self._passes, passed) if failures.word_for(problem) == failures.USED_UP else None
        )
        asking = Asking(
            kind, passed.time, passed.frames, begun.frame, (passed,), pairs, problem=problem, earlier=earlier
        )
        self._answer(asking, is_pass=True)
        self._witness.escaped(problem)

    # Reads of `.grad`

    def _read(self, func: Any, args: tuple[Any, ...], kwargs: Any, result: Any, frame: FrameType) -> None:
        """A read that gives None after a backward pass, in the user's own line, and not only to guard what follows."""
        if result is not None or not self._passes or not is_user_code(frame.f_code):
            return
        tensor = args[0]
        if id(tensor) in self._told or is_guarded(frame.f_code, frame.f_lasti):
            return
        with torch._C.DisableTorchFunction():
            record = self._recorder.of(tensor)
        last = self._passes[-1]
        if record.cleared > last.time:
            return
        self._told.add(id(tensor))
        frames = user_frames(frame, MOST_FRAMES)
        asking = Asking(READ, next(self._recorder.clock), frames, frame, (last,), ((tensor, Status.NONE),))
        self._answer(asking, is_pass=False, about=id(tensor))

    def _cleared(self, func: Any, args: tuple[Any, ...], kwargs: Any, result: Any, frame: FrameType) -> None:
        if len(args) > 1 and args[1] is None:
            self._recorder.of(args[0]).cleared = next(self._recorder.clock)

    # Optimizers

    def _before_step(self, optimizer: Optimizer, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if threading.get_ident() != self._recorder.thread:
            return
        if not _has_closure(args, kwargs):
            self._ask_for_step(optimizer, sys._getframe(2))
            # The update is no path of any question, and the mode would only slow it down.
            if self._switch.suspend():
                self._suspended.add(id(optimizer))

    def _after_step(self, optimizer: Optimizer, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if threading.get_ident() != self._recorder.thread:
            return
        if _has_closure(args, kwargs):
            self._ask_for_step(optimizer, sys._getframe(2))
        was_suspended = id(optimizer) in self._suspended
        self._suspended.discard(id(optimizer))
        self._steps[optimizer] = next(self._recorder.clock)
        del self._passes[:-1]
        if self._attention.is_satisfied:
            self._switch.leave()
        else:
            self._switch.resume(was_suspended)

    def _ask_for_step(self, optimizer: Optimizer, frame: FrameType) -> None:
        """An optimizer asks for the gradients of all it holds."""
        with torch._C.DisableTorchFunction():
            parameters = [p for group in optimizer.param_groups for p in group["params"]]
            statuses = [_presence(p.grad) for p in parameters]
        missing = statuses.count(Status.NONE)
        is_news = self._attention.is_news(id(optimizer), len(parameters), missing)
        if not self._switch.is_wanted:
            if is_news:
                # The next step is watched again, to see why.
                self._switch.enter()
            return
        since = self._steps.get(optimizer, 0)
        passes = tuple(passed for passed in self._passes if passed.time > since)
        if not passes:
            return
        with torch._C.DisableTorchFunction():
            asked = tuple(
                (p, status)
                for p, status in zip(parameters, statuses, strict=True)
                if status is not Status.NONE or self._recorder.of(p).cleared <= passes[-1].time
            )
        held = frozenset(map(id, parameters))
        frames = user_frames(frame, MOST_FRAMES)
        asking = Asking(STEP, next(self._recorder.clock), frames, frame, passes, asked, held=held)
        self._told.update(id(p) for p, status in asked if status is Status.NONE)
        self._answer(asking, is_pass=False)

    def _resume_after_failed_step(self) -> None:
        """A step that raised has left the mode off."""
        if self._suspended:
            self._suspended.clear()
            self._switch.resume(True)

    # Answers

    def _answer(self, asking: Asking, *, is_pass: bool, about: int | None = None) -> None:
        statuses = tuple(status for _, status in asking.sources)
        key = _key(asking.kind, asking.frames, about)
        self._attention.saw(key, statuses, is_pass=is_pass)
        self._recorder.is_quiet += 1
        try:
            with torch._C.DisableTorchFunction():
                build = describe.builder(asking, self._recorder)
                self._witness.answered(Answer(asking.kind, "torch", key, statuses, build))
        finally:
            self._recorder.is_quiet -= 1

    def _note_pass(self, passed: Pass) -> None:
        self._passes.append(passed)
        del self._passes[:-MOST_PASSES]
        self._told.clear()
        self._recorder.question_answered()


def _pass(*_: Any) -> None:
    """A question is noted by its own hooks."""


def _key(kind: str, frames: Frames, about: int | None = None) -> Hashable:
    """Equal for the same question from the same place. Codes that were judged are kept, so that their ids stay good."""
    return (kind, id(frames[0][0]), frames[0][1], about) if frames else (kind, None, None, about)


def _tensors(given: Any) -> tuple[Tensor, ...]:
    if isinstance(given, Tensor):
        return (given,)
    if isinstance(given, dict):
        given = given.values()
    return tuple(part for part in given if isinstance(part, Tensor)) if given is not None else ()


def _distinct(tensors: Iterable[Tensor]) -> Iterable[Tensor]:
    return {id(tensor): tensor for tensor in tensors}.values()


def _presence(gradient: Any) -> Status:
    return Status.NONE if gradient is None else Status.OK


def _has_closure(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    return any(callable(given) for given in (*args, *kwargs.values()))
