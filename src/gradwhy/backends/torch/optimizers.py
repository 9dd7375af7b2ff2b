"""What optimizers ask for: a step is a question about all that they hold."""

from __future__ import annotations

import gc
import sys
import threading
import weakref
from types import FrameType
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import Parameter
from torch.optim.optimizer import Optimizer, register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from gradwhy.backends.patches import Hooks, standing
from gradwhy.backends.torch.asking import STEP, Asking
from gradwhy.backends.torch.modules import all_of, hidden, live_modules, registered
from gradwhy.backends.torch.questions import Questions, presence
from gradwhy.backends.torch.record import MOST_FRAMES, Recorder
from gradwhy.backends.torch.watch import Watch
from gradwhy.flow import Status
from gradwhy.source.positions import user_frames


class Optimizers:
    """Watches the steps of every optimizer, and lets the mode leave after one of them."""

    def __init__(self, recorder: Recorder, watch: Watch, questions: Questions) -> None:
        self._recorder = recorder
        self._watch = watch
        self._questions = questions
        self._stepped: weakref.WeakKeyDictionary[Optimizer, int] = weakref.WeakKeyDictionary()
        self._aside: set[int] = set()
        self._known_strangers: set[int] = set()

    def open_always(self, hooks: Hooks) -> None:
        """Put the hooks in place that stand between the stretches, too."""
        before = hooks.guarded("torch.optimizer.before", self._before_step)
        after = hooks.guarded("torch.optimizer.after", self._after_step)
        hooks.add(standing("optimizer_step_pre_hook", register_optimizer_step_pre_hook(before).remove))
        hooks.add(standing("optimizer_step_post_hook", register_optimizer_step_post_hook(after).remove))

    def open(self, hooks: Hooks) -> None:
        """Put the hooks in place that stand while the program is watched."""
        for owner in (Optimizer, nn.Module):
            hooks.wrap(
                owner,
                "zero_grad",
                f"torch.{owner.__name__}.zero_grad",
                before=self._before_clearing,
                after=self._after_clearing,
                raised=self._clearing_raised,
            )

    @property
    def _is_elsewhere(self) -> bool:
        return threading.get_ident() != self._recorder.thread

    def _before_step(self, optimizer: Optimizer, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if self._is_elsewhere:
            return
        if not self._watch.is_on:
            self._look_in(optimizer)
        elif not _has_closure(args, kwargs):
            self._ask(optimizer, sys._getframe(2))
        # The update is no path of any question, and the mode would only slow it down.
        if not _has_closure(args, kwargs) and self._watch.set_aside():
            self._aside.add(id(optimizer))

    def _after_step(self, optimizer: Optimizer, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if not self._watch.is_on or self._is_elsewhere:
            return
        if _has_closure(args, kwargs):
            self._ask(optimizer, sys._getframe(2))
        was_set_aside = id(optimizer) in self._aside
        self._aside.discard(id(optimizer))
        time = self._stepped[optimizer] = next(self._recorder.clock)
        self._recorder.writes.stepped(optimizer, time, user_frames(sys._getframe(2), MOST_FRAMES))
        del self._questions.passes[:-1]
        if self._questions.attention.is_satisfied:
            self._watch.end()
        else:
            self._watch.put_back(was_set_aside)

    def _look_in(self, optimizer: Optimizer) -> None:
        """Between the stretches: if a gradient is missing that was there, or a parameter is held that was not, watch again.

        It is the next step that can tell why.
        """
        held = missing = 0
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                held += 1
                if parameter.grad is None:
                    missing += 1
        if self._questions.attention.is_news(id(optimizer), held, missing):
            self._watch.begin()
            self._notice_switches(optimizer)

    def _notice_switches(self, optimizer: Optimizer) -> None:
        """What was frozen, or freed, while nothing was watched."""
        with torch._C.DisableTorchFunction():
            for parameter in (p for group in optimizer.param_groups for p in group["params"]):
                record = self._recorder.known(parameter)
                if record is not None and record.requires_grad is not parameter.requires_grad:
                    self._recorder.switched(parameter, record, ())

    def _ask(self, optimizer: Optimizer, frame: FrameType) -> None:
        """An optimizer asks for the gradients of all it holds."""
        with torch._C.DisableTorchFunction():
            parameters = [p for group in optimizer.param_groups for p in group["params"]]
            statuses = [presence(p.grad) for p in parameters]
        self._questions.attention.is_news(id(optimizer), len(parameters), statuses.count(Status.NONE))
        since = self._stepped.get(optimizer, 0)
        passes = tuple(passed for passed in self._questions.passes if passed.time > since)
        if not passes:
            return
        is_in_vain = Status.OK not in statuses
        asked = tuple(
            (p, status)
            for p, status in zip(parameters, statuses, strict=True)
            if status is not Status.NONE
            or not self._was_cleared(p, passes[-1].time)
            or (is_in_vain and self._questions.had_gradient(p, passes))
        )
        frames = user_frames(frame, MOST_FRAMES)
        held = frozenset(map(id, parameters))
        asking = Asking(STEP, next(self._recorder.clock), frames, frame, passes, asked, held=held)
        self._questions.answer(asking, about=id(optimizer))
        self._ask_of_unheld(asking, optimizer)

    def _ask_of_unheld(self, asked: Asking, optimizer: Optimizer) -> None:
        """A step is no answer for parameters that got a gradient and that no optimizer holds, nor any module registers."""
        looks = [passed.look for passed in asked.passes if passed.look is not None]
        received = {key for look in looks for key, status in look.received.items() if status is Status.OK}
        strangers = received - asked.held
        if not strangers or strangers <= self._known_strangers:
            return
        self._known_strangers |= strangers
        with torch._C.DisableTorchFunction():
            lost = [p for p in self._hidden_from(asked.held) if id(p) in strangers]
        if lost:
            sources = tuple((parameter, Status.UNHELD) for parameter in lost)
            unheld = frozenset(map(id, lost))
            time = next(self._recorder.clock)
            asking = Asking(STEP, time, asked.frames, asked.frame, asked.passes, sources, unheld=unheld)
            self._questions.answer(asking, about=("unheld", id(optimizer)))

    @staticmethod
    def _hidden_from(held: frozenset[int]) -> list[Parameter]:
        """What modules hide in plain containers, beside parameters that an optimizer holds, and no optimizer holds."""
        modules = [module for module in live_modules() if any(id(p) in held for p in registered(module))]
        parts = {id(part): part for module in modules for part in all_of(module)}
        optimizers = [found for found in gc.get_objects() if issubclass(type(found), Optimizer)]
        everywhere = {id(p) for other in optimizers for group in other.param_groups for p in group["params"]}
        return [parameter for parameter in hidden(parts.values()) if id(parameter) not in everywhere]

    # Clearing

    def _was_cleared(self, parameter: Tensor, time: int) -> bool:
        """Whether the gradient was taken away after `time`, so that its absence says nothing."""
        record = self._recorder.known(parameter)
        return record is not None and record.cleared > time

    def _before_clearing(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        return not self._is_elsewhere and self._watch.set_aside()

    def _after_clearing(self, was_set_aside: bool, result: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if not was_set_aside:
            return
        self._watch.put_back(True)
        owner = args[0]
        if isinstance(owner, nn.Module):
            parameters = list(owner.parameters())
        else:
            parameters = [p for group in owner.param_groups for p in group["params"]]
        time = next(self._recorder.clock)
        frames = user_frames(sys._getframe(2), MOST_FRAMES)
        table = self._recorder.table
        for parameter in parameters:
            entry = table.get(id(parameter))
            if entry is not None:
                entry.record.cleared = time
                entry.record.cleared_by = frames

    def _clearing_raised(
        self, was_set_aside: bool, problem: BaseException, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        self._watch.put_back(bool(was_set_aside))


def _has_closure(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    return any(callable(given) for given in (*args, *kwargs.values()))
