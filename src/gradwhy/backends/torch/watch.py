"""The stretches in which the program is watched; between them nearly nothing of ours stands."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import torch

from gradwhy.backends.patches import Hooks, Undo, standing
from gradwhy.backends.torch.mode import Observing
from gradwhy.backends.torch.ops import SILENT
from gradwhy.backends.torch.record import Recorder


class Stretch(Hooks):
    """The hooks that stand during one stretch; if one fails, those that always stand come off, too."""

    def __init__(self, always: Hooks) -> None:
        super().__init__(_Nobody())
        self._always = always

    def fail(self, what: str, problem: BaseException) -> None:
        self.are_on = False
        self._always.fail(what, problem)


class Watch:
    """Begins and ends the stretches, and sets the mode aside where it must not be.

    The mode lies at the bottom of PyTorch's stack of modes, so that the program's own come and go above it and see what they
    would see without it.
    """

    def __init__(self, always: Hooks, recorder: Recorder) -> None:
        self._always = always
        self._recorder = recorder
        self._openers: list[Callable[[Hooks], None]] = []
        self.refused: Callable[..., None] = _ignore
        """Is told of every call that raises: the function, its arguments, the exception, the frame that called."""
        self._stretch: Stretch | None = None
        self._mode: Observing | None = None
        self._is_aside = False
        self._compiled = 0
        always.add(self.end)

    def on_begin(self, opener: Callable[[Hooks], None]) -> None:
        """Let `opener` put its hooks in place whenever a stretch begins."""
        self._openers.append(opener)

    @property
    def is_on(self) -> bool:
        """Whether a stretch has begun and not ended."""
        return self._stretch is not None

    @property
    def is_looking(self) -> bool:
        """Whether what runs right now is seen."""
        return self._stretch is not None and not self._is_aside

    def begin(self) -> None:
        """Watch from here on, unless PyTorch has just set a mode of ours aside to call it."""
        if self._stretch is not None or not self._always.are_on or _is_reporting():
            return
        self._recorder.begin()
        stretch = self._stretch = Stretch(self._always)
        for opener in self._openers:
            opener(stretch)
        self._mode = Observing(stretch, SILENT, self._recorder.note, self.refused)
        stretch.add(standing("TorchFunctionMode", self._take_off))
        self._put_on()

    def end(self) -> None:
        """Watch no more."""
        stretch, self._stretch = self._stretch, None
        if stretch is not None:
            stretch.take_off()

    def set_aside(self) -> bool:
        """Take the mode off for a while; False where it was not there."""
        was_there = self._remove()
        self._is_aside = self._is_aside or was_there
        return was_there

    def put_back(self, was_set_aside: bool) -> None:
        """End what `set_aside` began."""
        if was_set_aside and self._stretch is not None:
            self._put_on()

    def put_back_after_failure(self) -> None:
        """Put the mode back where what it was set aside for has raised instead of ending."""
        if self._is_aside and not self._compiled and self._stretch is not None and not _is_reporting():
            self._put_on()

    def around_compiled(self) -> Callable[[], None]:
        """Set the mode aside while a compiled callable runs: Dynamo would trace into it. Gives what ends that."""
        was_set_aside = self.set_aside()
        self._compiled += 1

        def end() -> None:
            self._compiled -= 1
            self.put_back(was_set_aside)

        return end

    def _put_on(self) -> None:
        modes = _take_all()
        _put_all([self._mode, *(mode for mode in modes if mode is not self._mode)])
        self._is_aside = False

    def _remove(self) -> bool:
        modes = _take_all()
        _put_all([mode for mode in modes if mode is not self._mode])
        return any(mode is self._mode for mode in modes)

    def _take_off(self) -> None:
        """Take the mode off for good, at once or, where PyTorch is calling it, at the next chance."""
        if not self._remove() and _is_reporting():
            _at_next_step(self._remove)


def _ignore(*_: Any) -> None:
    """Nobody wants to know."""


def _at_next_step(leave: Callable[[], object]) -> None:
    """Take the mode off before the next step of an optimizer, the first door that PyTorch opens without it."""

    def door(*_: Any) -> None:
        leave()
        undo()

    undo: Undo = torch.optim.optimizer.register_optimizer_step_pre_hook(door).remove


def _take_all() -> list[Any]:
    """Every mode, the bottom one first, off the stack."""
    modes = [torch._C._pop_torch_function_stack() for _ in range(torch._C._len_torch_function_stack())]
    return modes[::-1]


def _put_all(modes: list[Any]) -> None:
    for mode in modes:
        torch._C._push_on_torch_function_stack(mode)


def _is_reporting() -> bool:
    """Whether a mode of ours is being called further up this thread's stack."""
    frame = sys._getframe()
    code = Observing.__torch_function__.__code__
    while frame is not None:
        if frame.f_code is code:
            return True
        frame = frame.f_back  # type: ignore[assignment]
    return False


class _Nobody:
    """The witness of a stretch: the hooks that always stand tell the real one."""

    def answered(self, answer: Any) -> None:
        """Nothing is asked through a stretch."""

    def escaped(self, problem: BaseException) -> None:
        """Nothing is asked through a stretch."""

    def failed(self, what: str, problem: BaseException) -> None:
        """It is told by the hooks that always stand."""

    def declined(self, why: Any) -> None:
        """Nothing is declined by a stretch."""
