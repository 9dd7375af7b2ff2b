"""The questions that a program asks PyTorch: backward passes, `autograd.grad`, reads of `.grad`."""

from __future__ import annotations

import sys
import threading
from collections.abc import Hashable, Iterable
from types import FrameType
from typing import Any

import torch
from torch import Tensor
from torch.nn import Parameter

from gradwhy.backends.contract import Answer, Witness
from gradwhy.backends.patches import Hooks
from gradwhy.backends.torch import describe, failures, look, ops
from gradwhy.backends.torch.asking import BACKWARD, GRAD, READ, Asking, Pass
from gradwhy.backends.torch.attention import Attention
from gradwhy.backends.torch.guards import is_compared, is_guarded
from gradwhy.backends.torch.mode import without_dispatch
from gradwhy.backends.torch.record import MOST_FRAMES, Recorder
from gradwhy.backends.torch.trail import Frames, Tie
from gradwhy.backends.torch.watch import Watch
from gradwhy.flow import Status
from gradwhy.source.positions import is_user_code, user_frames

MOST_PASSES = 8
_NESTED = object()


class Begun:
    """A backward pass that has begun: its targets, and for what inputs it was asked, none where for all leaves.

    It must not hold the frame that asks: that frame holds it, and tensors would live until the cycle is found.
    """

    __slots__ = ("inputs", "is_due", "passed", "targets")

    def __init__(self, passed: Pass, targets: tuple[Tensor, ...], inputs: tuple[Tensor, ...], *, is_due: bool) -> None:
        self.passed = passed
        self.targets = targets
        self.inputs = inputs
        self.is_due = is_due


class Questions:
    """Watches every question of one thread."""

    def __init__(self, recorder: Recorder, watch: Watch, witness: Witness) -> None:
        self.recorder = recorder
        self._watch = watch
        self.witness = witness
        self._depth = 0
        self._told: set[int] = set()
        self.attention = Attention()
        self.passes: list[Pass] = []
        """The last backward passes that ran, the latest one last."""

    def open(self, hooks: Hooks) -> None:
        """Put every hook in place."""
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
        special = self.recorder.special
        special[ops.GET_GRAD] = self._read
        special[ops.SET_GRAD] = self._cleared
        special.update(dict.fromkeys((Tensor.backward, autograd.backward, autograd.grad), _pass))

    # Backward passes

    @property
    def is_elsewhere(self) -> bool:
        """Whether the question is none of the watched thread and time."""
        return threading.get_ident() != self.recorder.thread or not self._watch.is_looking

    def _begin(self, kind: str, tensors: Any, inputs: Any) -> Begun | object | None:
        """A question begins; one inside another, as a checkpoint asks it, is none of its own."""
        if not self._depth:
            self._watch.put_back_after_failure()
        if self.is_elsewhere:
            return None
        self._depth += 1
        if self._depth > 1:
            return _NESTED
        recorder = self.recorder
        frames = user_frames(sys._getframe(3), MOST_FRAMES)
        targets = _tensors(tensors)
        is_due = self.attention.is_due(place_of(kind, frames)) and look.can_look()
        seen = look.Look() if is_due else None
        with torch._C.DisableTorchFunction():
            if seen is not None:
                seen.arm(target.grad_fn for target in targets)
            records = tuple(recorder.of(target) for target in targets)
            entries = [recorder.table.get(id(target)) for target in targets]
        ties = tuple(entry if isinstance(entry, Tie) else None for entry in entries)
        passed = Pass(next(recorder.clock), records, ties, frames, seen)
        return Begun(passed, targets, _tensors(inputs), is_due=is_due)

    def _end(self, begun: Any) -> Begun | None:
        """The question has ended; what began it is given back, unless it was inside another."""
        if begun is not None:
            self._depth -= 1
        if not isinstance(begun, Begun):
            return None
        if begun.passed.look is not None:
            begun.passed.look.disarm()
        return begun

    def _before_backward(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return self._begin(BACKWARD, args[0] if args else kwargs.get("tensors"), kwargs.get("inputs"))

    def _after_backward(self, token: Any, result: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        begun = self._end(token)
        if begun is None:
            return
        passed = begun.passed
        if begun.is_due:
            with torch._C.DisableTorchFunction():
                # What was not reached was not asked for: an optimizer or a read of `.grad` will ask.
                sources = tuple(pair for pair in self._answers(begun) if begun.inputs or pair[1] is not Status.NONE)
            asking = Asking(BACKWARD, passed.time, passed.frames, sys._getframe(2), (passed,), sources)
            self.answer(asking, about=_identity(sources), is_pass=True)
        else:
            self._answer_as_before(BACKWARD, passed)
        self.passes.append(passed)
        del self.passes[:-MOST_PASSES]
        self._told.clear()
        self.recorder.question_answered()

    def _answers(self, begun: Begun) -> Iterable[tuple[Tensor, Status]]:
        """What the leaves got that the pass reached, or those that it was asked for."""
        received = begun.passed.look.received if begun.passed.look is not None else {}
        for leaf in begun.inputs or self._leaves(begun):
            status = received.get(id(leaf))
            yield leaf, look.status_of(leaf.grad) if status is None else status

    def _leaves(self, begun: Begun) -> tuple[Tensor, ...]:
        """The leaves that autograd reaches and the program itself has used; autograd makes some of its own."""
        asking = [target for target in begun.targets if target.requires_grad]
        reached = look.leaves_of(target.grad_fn for target in asking)
        reached += [target for target in asking if target.grad_fn is None]
        return self.recorder.in_order(leaf for leaf in reached if self.recorder.known(leaf) is not None)

    def _backward_raised(
        self, token: Any, problem: BaseException, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        begun = self._end(token)
        if begun is None:
            return
        with torch._C.DisableTorchFunction():
            sources = begun.inputs or self._lost(begun, failures.word_for(problem))
        self._answer_failure(BACKWARD, begun, sources, problem)

    def _lost(self, begun: Begun, word: str | None) -> tuple[Tensor, ...]:
        """The leaves that a refused pass would have reached."""
        leaves = self._leaves(begun)
        if word == failures.ONCE or not leaves:
            # The refusing node stands where the graph would go on.
            return failures.lost_leaves(self.recorder, begun.passed)
        if word == failures.CHANGED:
            # A pass of their own, or a part of this one, has brought others their gradient.
            return tuple(leaf for leaf in leaves if leaf.grad is None) or leaves
        return leaves

    # autograd.grad

    def _before_grad(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        outputs = args[0] if args else kwargs.get("outputs")
        return self._begin(GRAD, outputs, args[1] if len(args) > 1 else kwargs.get("inputs"))

    def _after_grad(self, token: Any, result: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        begun = self._end(token)
        if begun is None:
            return
        gradients = list(result.values()) if isinstance(result, dict) else list(result)
        with torch._C.DisableTorchFunction():
            if begun.is_due:
                statuses = [look.status_of(gradient) for gradient in gradients]
            else:
                statuses = [presence(gradient) for gradient in gradients]
            self._note_gradients(begun, gradients)
        passed = begun.passed
        sources = tuple(zip(begun.inputs, statuses, strict=False))
        asking = Asking(GRAD, passed.time, passed.frames, sys._getframe(2), (passed,), sources)
        self.answer(asking, is_pass=True)
        self.recorder.question_answered()

    def _note_gradients(self, begun: Begun, gradients: list[Any]) -> None:
        """The gradients are values like others: with `create_graph` they carry gradients of their own."""
        call = self.recorder.call(ops.GRADIENT, (*begun.targets, *begun.inputs), None, sys._getframe(3))
        for index, gradient in enumerate(gradients):
            if isinstance(gradient, Tensor):
                self.recorder.born(gradient, call, index)

    def _grad_raised(self, token: Any, problem: BaseException, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        begun = self._end(token)
        if begun is None:
            return
        with torch._C.DisableTorchFunction():
            lost = failures.refused(begun.inputs, self._leaves(begun), problem)
        self._answer_failure(GRAD, begun, lost, problem)

    # Reads of `.grad`

    def _read(self, func: Any, args: tuple[Any, ...], kwargs: Any, result: Any, frame: FrameType) -> None:
        """A read that gives None after a backward pass, in the user's own line, and not only to guard what follows."""
        if result is not None or not self.passes or not is_user_code(frame.f_code):
            return
        tensor = args[0]
        if id(tensor) in self._told or is_guarded(frame.f_code, frame.f_lasti):
            return
        last = self.passes[-1]
        if self.recorder.of(tensor).cleared > last.time:
            # Nothing is there any more, and the program may be making sure of that.
            if is_compared(frame.f_code, frame.f_lasti) or not self.had_gradient(tensor, (last,)):
                return
        self._told.add(id(tensor))
        frames = user_frames(frame, MOST_FRAMES)
        asking = Asking(READ, next(self.recorder.clock), frames, frame, (last,), ((tensor, Status.NONE),))
        self.answer(asking, about=id(tensor))

    def _cleared(self, func: Any, args: tuple[Any, ...], kwargs: Any, result: Any, frame: FrameType) -> None:
        if len(args) > 1 and args[1] is None:
            record = self.recorder.of(args[0])
            record.cleared = next(self.recorder.clock)
            # One gradient alone is given up on purpose.
            record.cleared_by = ()

    def had_gradient(self, tensor: Tensor, passes: Iterable[Pass]) -> bool:
        """Whether a gradient that one of the passes brought was cleared together with all others."""
        record = self.recorder.known(tensor)
        if record is None or not record.cleared_by:
            return False
        looks = [passed.look for passed in passes if passed.look is not None and passed.time < record.cleared]
        return any(seen.received.get(id(tensor), Status.NONE) is not Status.NONE for seen in looks)

    # Answers

    def answer(self, asking: Asking, *, about: Hashable = None, is_pass: bool = False) -> None:
        """Tell the session of a question that was answered; `about` tells apart what is asked from one place."""
        statuses = tuple(status for _, status in asking.sources)
        place = place_of(asking.kind, asking.frames)
        self._told.update(id(source) for source, status in asking.sources if status is Status.NONE)
        self._tell(place, (*place, about), asking, statuses, is_pass=is_pass)

    def _answer_as_before(self, kind: str, passed: Pass) -> None:
        """A pass that was not looked at counts as the one before it from the same place."""
        place = place_of(kind, passed.frames)
        key, statuses = self.attention.last(place)
        asking = Asking(kind, passed.time, passed.frames, None, (passed,), ())
        self._tell(place, key, asking, statuses, is_pass=True)

    def _answer_failure(self, kind: str, begun: Begun, sources: Iterable[Tensor], problem: BaseException) -> None:
        passed = begun.passed
        pairs = tuple((source, Status.ERROR) for source in sources)
        is_used_up = failures.word_for(problem) == failures.USED_UP
        earlier = failures.earlier_pass(self.passes, passed) if is_used_up else None
        frame = sys._getframe(3)
        asking = Asking(kind, passed.time, passed.frames, frame, (passed,), pairs, problem=problem, earlier=earlier)
        self.answer(asking, about="failed", is_pass=True)
        self.witness.escaped(problem)

    def _tell(
        self, place: Hashable, key: Hashable, asking: Asking, statuses: tuple[Status, ...], *, is_pass: bool
    ) -> None:
        self.attention.saw(place, key, statuses, is_pass=is_pass)
        # Nothing of what we do now is the program's.
        self.recorder.is_quiet += 1
        try:
            with torch._C.DisableTorchFunction():
                build = describe.builder(asking, self.recorder)
                self.witness.answered(Answer(asking.kind, "torch", key, statuses, build))
        finally:
            self.recorder.is_quiet -= 1


def place_of(kind: str, frames: Frames) -> tuple[str, int | None, int | None]:
    """Equal for a question of this kind from one place. Codes that were judged are kept, so that their ids stay good."""
    return (kind, id(frames[0][0]), frames[0][1]) if frames else (kind, None, None)


def presence(gradient: Any) -> Status:
    """Whether there is a gradient, whatever its values."""
    return Status.NONE if gradient is None else Status.OK


def _identity(sources: tuple[tuple[Tensor, Status], ...]) -> Hashable:
    """Equal for the same parameters. Other leaves may be made anew for each pass, and are the same in its sense."""
    return tuple(id(source) if isinstance(source, Parameter) else 0 for source, _ in sources)


def _pass(*_: Any) -> None:
    """A question is noted by its own hooks."""


def _tensors(given: Any) -> tuple[Tensor, ...]:
    if isinstance(given, Tensor):
        return (given,)
    if isinstance(given, dict):
        given = given.values()
    return tuple(part for part in given if isinstance(part, Tensor)) if given is not None else ()
