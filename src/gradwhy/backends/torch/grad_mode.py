"""The stretches in which the program had gradients turned off."""

from __future__ import annotations

from collections.abc import Iterator
from types import CodeType, FrameType
from typing import Any

import torch
from torch.autograd import grad_mode
from torch.utils import _contextlib

from gradwhy.source.positions import user_frames

_GRAD_MODE_FILE = grad_mode.__file__
_CONTEXT_FILE = _contextlib.__file__
_MOST_FRAMES = 12


class Pause:
    """One stretch without recording: the user's word for it, and where it began.

    `end` is None while it is open. `decorated` is the function that a decorator pauses.
    """

    __slots__ = ("decorated", "end", "end_frames", "frames", "is_direct", "kind", "start")

    def __init__(self, kind: str, start: int, frames: tuple[tuple[CodeType, int], ...]) -> None:
        self.kind = kind
        self.start = start
        self.frames = frames
        self.end: int | None = None
        self.end_frames: tuple[tuple[CodeType, int], ...] = ()
        self.decorated: CodeType | None = None
        self.is_direct = True


class GradMode:
    """Follows the grad mode of one thread. `current` is the pause that is open, None while gradients are on.

    Of pauses that lie inside each other the outermost one is told: it alone would cut.
    """

    def __init__(self, clock: Iterator[int]) -> None:
        self.current: Pause | None = None
        self._clock = clock
        self._outer: list[Pause | None] = []

    def begin(self) -> None:
        """Forget what was open: it was not seen what became of it."""
        self.current = None
        self._outer.clear()

    def was_set(self, frame: FrameType) -> None:
        """The grad mode has just been set; `frame` set it."""
        entering, kind = _what_set(frame)
        if entering is False and self._outer:
            self._change_to(self._outer.pop(), frame)
        else:
            if entering:
                self._outer.append(self.current)
            self._change_to(None if torch.is_grad_enabled() else self.current or self._open(kind, frame), frame)
        self._agree(frame)

    def entered(self, kind: str, frame: FrameType | None) -> None:
        """A context was entered that sets the grad mode without telling."""
        self._outer.append(self.current)
        self._change_to(None if torch.is_grad_enabled() else self.current or self._open(kind, frame), frame)

    def exited(self, frame: FrameType | None) -> None:
        """The context was left."""
        self._change_to(self._outer.pop() if self._outer else None, frame)
        self._agree(frame)

    def reconcile(self, frames: tuple[tuple[CodeType, int], ...]) -> Pause | None:
        """The pause that is open now, where the grad mode was changed behind our back; `frames` met it first."""
        if torch.is_grad_enabled():
            self._close(self.current, None)
            self.current = None
        elif self.current is None:
            self.current = Pause("torch.no_grad()", next(self._clock), frames)
        return self.current

    def _open(self, kind: str, frame: FrameType | None) -> Pause:
        pause = Pause(kind, next(self._clock), user_frames(frame, _MOST_FRAMES))
        pause.is_direct = _is_users_line(frame, pause.frames)
        decorated = _decorated(frame)
        if decorated is not None:
            pause.decorated = decorated
            pause.kind = f"@{kind}"
        return pause

    def _change_to(self, pause: Pause | None, frame: FrameType | None) -> None:
        if self.current is not pause:
            self._close(self.current, frame)
            self.current = pause

    def _close(self, pause: Pause | None, frame: FrameType | None) -> None:
        if pause is not None and pause not in self._outer:
            pause.end = next(self._clock)
            pause.end_frames = user_frames(frame, _MOST_FRAMES)

    def _agree(self, frame: FrameType | None) -> None:
        if (self.current is None) is not torch.is_grad_enabled():
            self.reconcile(user_frames(frame, _MOST_FRAMES))


def _what_set(frame: FrameType | None) -> tuple[bool | None, str]:
    """Whether a context was entered (True) or left (False), None for a plain call; and what the user calls it."""
    entering: bool | None = None
    kind = "torch.set_grad_enabled(False)"
    while frame is not None and frame.f_code.co_filename == _GRAD_MODE_FILE:
        owner, _, method = frame.f_code.co_qualname.rpartition(".")
        if owner in ("no_grad", "enable_grad"):
            kind = f"torch.{owner}()"
        if method in ("__enter__", "__exit__"):
            entering = method == "__enter__"
        frame = frame.f_back
    return entering, kind


def _is_users_line(frame: FrameType | None, frames: tuple[tuple[CodeType, int], ...]) -> bool:
    """Whether the user's own line paused, rather than a library that the line called."""
    while frame is not None and frame.f_code.co_filename in (_GRAD_MODE_FILE, _CONTEXT_FILE):
        frame = frame.f_back
    return frame is not None and bool(frames) and frame.f_code is frames[0][0]


def _decorated(frame: FrameType | None) -> CodeType | None:
    """The code of the function whose decorator is pausing."""
    while frame is not None and frame.f_code.co_filename == _GRAD_MODE_FILE:
        frame = frame.f_back
    if frame is None or frame.f_code.co_filename != _CONTEXT_FILE:
        return None
    held: Any = frame.f_locals.get("func")
    code = getattr(held, "__code__", None)
    return code if isinstance(code, CodeType) else None
