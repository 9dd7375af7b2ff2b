"""The mode through which PyTorch reports every call, and its place on the stack of modes."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from gradwhy.backends.patches import Hooks, hook_body
from gradwhy.backends.stand_in import stand_in
from gradwhy.backends.torch.ops import GET_GRAD

Note = Callable[..., None]

_DISPATCH = torch.overrides.handle_torch_function.__code__


class Observing(TorchFunctionMode):
    """Calls what the program called, unchanged, and reports it afterwards."""

    def __init__(self, hooks: Hooks, silent: frozenset[Any], note: Note, refused: Note) -> None:
        super().__init__()
        self._hooks = hooks
        self._refused = hooks.guarded("torch.op.refused", refused)
        self._silent = silent
        self._note = hook_body("torch.op", note)

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        is_silent = func in self._silent
        caller = sys._getframe(1)
        try:
            if is_silent:
                return func(*args, **kwargs) if kwargs else func(*args)
            if caller.f_code is _DISPATCH:
                # A function of PyTorch's that is written in Python handed itself over, and runs again.
                result = stand_in(_caller_of_dispatched(caller))(func, args, kwargs)
            else:
                result = stand_in(caller)(func, args, kwargs)
        except BaseException as problem:
            # The traceback is the program's: neither this frame nor the one that stands in is to be seen in it.
            place = problem.__traceback__ and problem.__traceback__.tb_next
            problem.__traceback__ = place if is_silent or place is None else place.tb_next
            if type(problem) is RuntimeError:
                self._refused(func, args, problem, caller)
            raise
        # What `Hooks.guarded` does, without a call more for each op.
        hooks = self._hooks
        if hooks.are_on and (result is None or func != GET_GRAD):
            try:
                if types:
                    with torch._C.DisableTorchFunctionSubclass():
                        self._note(func, args, kwargs, result, caller)
                else:
                    self._note(func, args, kwargs, result, caller)
            except BaseException as problem:
                hooks.fail("torch.op", problem)
        return result


def _caller_of_dispatched(dispatch: FrameType) -> FrameType:
    function = dispatch.f_back
    return (function.f_back if function is not None else None) or dispatch


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
