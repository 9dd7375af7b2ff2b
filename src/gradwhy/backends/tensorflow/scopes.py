"""The tapes of a run: when each recorded, what it watched, and who stopped it."""

from __future__ import annotations

import sys
import weakref
from dataclasses import dataclass, field
from typing import Any

from gradwhy.backends.patches import Hooks
from gradwhy.backends.tensorflow.frames import RawFrames, walk
from gradwhy.backends.tensorflow.record import Recorder
from gradwhy.backends.tensorflow.records import Made

_MOST_SCOPES = 512
"""How many tapes are remembered: each holds what it watched, and how that was made."""


@dataclass(slots=True)
class TapeScope:
    """One stretch in which a tape recorded, or in which it was told not to."""

    number: int
    kind: str
    start: int
    frames: RawFrames
    records: bool
    pauses: tuple[int, ...] = ()
    end: int | None = None
    watches_variables: bool = True
    watches: list[tuple[Any, int, RawFrames]] = field(default_factory=list)
    asked: list[RawFrames] = field(default_factory=list)


class Tapes:
    """Follows `GradientTape` objects through their four private doors, which all public ones go through."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.scopes: dict[int, TapeScope] = {}
        self._of_tape: weakref.WeakKeyDictionary[Any, TapeScope] = weakref.WeakKeyDictionary()
        self.last: TapeScope | None = None
        self.last_tape: Any = lambda: None
        self.on_push: Any = lambda: None
        self._paused: weakref.WeakKeyDictionary[Any, TapeScope] = weakref.WeakKeyDictionary()

    def attach(self, hooks: Hooks, backprop: Any) -> None:
        tape = backprop.GradientTape
        hooks.wrap(tape, "_push_tape", "tensorflow.push", after=self.pushed)
        hooks.wrap(tape, "_pop_tape", "tensorflow.pop", after=self.popped)
        hooks.wrap(tape, "watch", "tensorflow.watch", after=self.watched)

    def of(self, tape: Any) -> TapeScope | None:
        """The stretch in which `tape` records or last recorded."""
        return self._of_tape.get(tape)

    def pushed(self, token: Any, result: Any, args: tuple[Any, ...], kwargs: Any) -> None:
        tape = args[0]
        self.on_push()
        state = self.recorder.state
        paused = self._paused.pop(tape, None)
        if paused is not None:
            paused.end = next(self.recorder.clock)
            state.scopes = tuple(s for s in state.scopes if s != paused.number)
            return
        scope = self._of_tape.get(tape)
        if scope is not None and scope.end is not None and _caller() == "_ensure_recording":
            # `jacobian` opens the tape again for its own ops.
            return
        time = next(self.recorder.clock)
        frames, _ = walk(sys._getframe(1))
        scope = TapeScope(time, "GradientTape", time, frames, True, (), None, bool(tape._watch_accessed_variables))
        self.scopes[scope.number] = scope
        self.last, self.last_tape = scope, weakref.ref(tape)
        self._of_tape[tape] = scope
        state.scopes = (*state.scopes, scope.number)
        self._drop_old()

    def popped(self, token: Any, result: Any, args: tuple[Any, ...], kwargs: Any) -> None:
        tape = args[0]
        scope = self._of_tape.get(tape)
        if scope is None:
            return
        state, by = self.recorder.state, _caller()
        if by == "_ensure_recording":
            return
        time = next(self.recorder.clock)
        if by == "stop_recording":
            frames, _ = walk(sys._getframe(1))
            paused = TapeScope(time, "tape.stop_recording()", time, frames, False, (scope.number,))
            self.scopes[time] = paused
            self._paused[tape] = paused
            state.scopes = (*state.scopes, time)
            return
        scope.end = time
        state.scopes = tuple(s for s in state.scopes if s != scope.number)

    def watched(self, token: Any, result: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        tape, what = args[0], (args[1] if len(args) > 1 else kwargs.get("tensor"))
        scope = self._of_tape.get(tape)
        if scope is None:
            return
        frames, _ = walk(sys._getframe(1))
        time = next(self.recorder.clock)
        for tensor in flat_tensors(what):
            scope.watches.append((self.recorder.of(tensor), time, frames))

    def _drop_old(self) -> None:
        """Keep the table of scopes bounded: a run of a million steps opens a million tapes."""
        if len(self.scopes) > _MOST_SCOPES:
            for number in list(self.scopes)[: _MOST_SCOPES // 2]:
                if self.scopes[number].end is not None:
                    del self.scopes[number]


def _caller() -> str:
    """The function of `GradientTape` that pushed or popped the tape."""
    frame = sys._getframe(2)
    while frame is not None:
        code = frame.f_code
        if code.co_filename.endswith("backprop.py") and code.co_name not in ("_push_tape", "_pop_tape"):
            return code.co_name
        if code.co_filename.endswith("contextlib.py") or "/gradwhy/" in code.co_filename.replace("\\", "/"):
            frame = frame.f_back  # type: ignore[assignment]
            continue
        if code.co_name in ("_push_tape", "_pop_tape"):
            frame = frame.f_back  # type: ignore[assignment]
            continue
        return code.co_name
    return ""


def flat_tensors(what: Any) -> list[Any]:
    """The tensors and variable handles in what a user passed to `watch`."""
    if isinstance(what, (list, tuple)):
        return [t for part in what for t in flat_tensors(part)]
    if isinstance(what, dict):
        return [t for part in what.values() for t in flat_tensors(part)]
    handle = getattr(what, "handle", None) if hasattr(type(what), "handle") else None
    return [handle if handle is not None else what]


__all__ = ["Made", "TapeScope", "Tapes", "flat_tensors"]
