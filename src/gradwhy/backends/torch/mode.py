"""The mode through which PyTorch reports every call, and its place on the stack of modes."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from gradwhy.backends.patches import Hooks, standing
from gradwhy.backends.stand_in import stand_in

Note = Callable[..., None]

_DISPATCH = torch.overrides.handle_torch_function.__code__


class Observing(TorchFunctionMode):
    """Calls what the program called, unchanged, and reports it afterwards."""

    def __init__(self, hooks: Hooks, silent: frozenset[Any], note: Note) -> None:
        super().__init__()
        self._hooks = hooks
        self._silent = silent
        self._note = hooks.guarded("torch.op", note)

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        caller = sys._getframe(1)
        is_silent = func in self._silent
        try:
            if is_silent:
                return func(*args, **kwargs) if kwargs else func(*args)
            result = stand_in(_asking_frame(caller))(func, args, kwargs)
        except BaseException as problem:
            # The traceback is the program's: neither this frame nor the one that stands in is to be seen in it.
            place = problem.__traceback__ and problem.__traceback__.tb_next
            problem.__traceback__ = place if is_silent or place is None else place.tb_next
            raise
        self._note(func, args, kwargs, result, caller)
        return result


def _asking_frame(caller: FrameType) -> FrameType:
    """The frame that called a function, behind the function's own frame that handed itself over and now runs again."""
    if caller.f_code is _DISPATCH and caller.f_back is not None:
        return caller.f_back.f_back or caller
    return caller


class ModeSwitch:
    """Puts the mode on the stack and takes it off again, wherever on the stack it is.

    It lies at the bottom, so that the program's own modes come and go above it and see what they saw without it.
    """

    def __init__(self, hooks: Hooks, mode: Observing) -> None:
        self._hooks = hooks
        self._mode = mode
        self.is_wanted = False
        self._is_suspended = False
        hooks.add(standing("TorchFunctionMode", self.leave))

    @property
    def is_watching(self) -> bool:
        """Whether the program is watched right now."""
        return self.is_wanted and not self._is_suspended

    def enter(self) -> None:
        """Observe from here on, if that is possible here: not while PyTorch has set the mode aside to call it."""
        self.is_wanted = True
        if self._hooks.are_on and not _is_reporting():
            modes = _take_all()
            _put_all([self._mode, *(mode for mode in modes if mode is not self._mode)])
            self._is_suspended = False

    def leave(self) -> None:
        """Observe no more. A mode that PyTorch is calling cannot be taken off at once."""
        self.is_wanted = False
        if not self.suspend() and _is_reporting():
            self._leave_later()

    def suspend(self) -> bool:
        """Take the mode off for a while; False where it was not there."""
        modes = _take_all()
        _put_all([mode for mode in modes if mode is not self._mode])
        was_there = any(mode is self._mode for mode in modes)
        self._is_suspended = self._is_suspended or was_there
        return was_there

    def resume(self, was_suspended: bool) -> None:
        """Put the mode back after `suspend` gave True, if it is still wanted."""
        if was_suspended and self.is_wanted:
            self.enter()

    def _leave_later(self) -> None:
        """Take the mode off before the next step of an optimizer, the first door that PyTorch opens without it."""

        def leave(*_: Any) -> None:
            self.suspend()
            handle.remove()

        handle = torch.optim.optimizer.register_optimizer_step_pre_hook(leave)


def without_dispatch(problem: BaseException) -> None:
    """Take the frames out of a traceback through which a function written in Python handed itself over to the mode."""
    before, place = None, problem.__traceback__
    while place is not None:
        following = place.tb_next
        if following is not None and following.tb_frame.f_code is _DISPATCH:
            following = following.tb_next
            if before is None:
                problem.__traceback__ = following
            else:
                before.tb_next = following
        else:
            before = place
        place = following


def _take_all() -> list[Any]:
    """Every mode, the bottom one first, off the stack."""
    modes = [torch._C._pop_torch_function_stack() for _ in range(torch._C._len_torch_function_stack())]
    return modes[::-1]


def _put_all(modes: list[Any]) -> None:
    for mode in modes:
        torch._C._push_on_torch_function_stack(mode)


def _is_reporting() -> bool:
    """Whether the mode is being called further up this thread's stack."""
    frame = sys._getframe()
    code = Observing.__torch_function__.__code__
    while frame is not None:
        if frame.f_code is code:
            return True
        frame = frame.f_back  # type: ignore[assignment]
    return False
