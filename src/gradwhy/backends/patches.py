"""Reversible patches, and hooks that never harm the program they observe."""

from __future__ import annotations

import contextlib
import functools
import inspect
import sys
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any

from gradwhy.backends.contract import Witness
from gradwhy.backends.stand_in import stand_in

Undo = Callable[[], None]

_open_patches: list[str] = []
_ABSENT = object()


def open_patches() -> tuple[str, ...]:
    """The names of all patches that stand, for the test fixture that refuses to leave one behind."""
    return tuple(_open_patches)


def patch(owner: Any, name: str, value: Any) -> Undo:
    """Set `owner.name` to `value`; calling the result puts back what was there.

    An attribute that `owner` only inherited is removed again, not copied down. What the program has meanwhile put over our
    value is its own and stays.
    """
    before = _held(owner, name)
    setattr(owner, name, value)
    ours = _held(owner, name)

    def put_back() -> None:
        if _held(owner, name) is not ours:
            return
        if before is _ABSENT:
            delattr(owner, name)
        else:
            setattr(owner, name, before)

    return standing(f"{getattr(owner, '__name__', type(owner).__name__)}.{name}", put_back)


def _held(owner: Any, name: str) -> Any:
    """What `owner` itself holds under `name`, a descriptor as it is."""
    return vars(owner).get(name, _ABSENT) if hasattr(owner, "__dict__") else getattr(owner, name, _ABSENT)


def standing(label: str, put_back: Callable[[], None]) -> Undo:
    """Register a change that is not an attribute (a callback, a mode) as a patch, undone by `put_back`, once."""
    _open_patches.append(label)
    lock = threading.Lock()

    def undo() -> None:
        with lock:
            if label not in done:
                done.add(label)
                _open_patches.remove(label)
                put_back()

    done: set[str] = set()
    return undo


class Hooks:
    """The patches of one backend, taken off together.

    A hook of ours that raises takes all of them off, tells the witness once, and lets the program run on; a
    KeyboardInterrupt is the user's own and is raised again once the hooks are off.
    """

    def __init__(self, witness: Witness) -> None:
        self._witness = witness
        self._undos: list[Undo] = []
        self._has_failed = False
        self.are_on = True

    def add(self, undo: Undo) -> None:
        self._undos.append(undo)

    def patch(self, owner: Any, name: str, value: Any) -> None:
        self.add(patch(owner, name, value))

    def take_off(self) -> None:
        """Undo every patch, the last one first; one that cannot be undone does not keep the others standing."""
        self.are_on = False
        problem: Exception | None = None
        while self._undos:
            try:
                self._undos.pop()()
            except Exception as wrong:
                problem = problem or wrong
        if problem is not None:
            raise problem

    def fail(self, what: str, problem: BaseException) -> None:
        """Take the hooks off because `problem` was raised in the hook `what`; re-raises what is the user's own."""
        # What went wrong first is what is told, not an undo that fails, too.
        with contextlib.suppress(Exception):
            self.take_off()
        if not isinstance(problem, Exception):
            raise problem
        if not self._has_failed:
            self._has_failed = True
            self._witness.failed(what, problem)

    def guarded(self, what: str, body: Callable[..., Any]) -> Callable[..., Any]:
        """`body` as a hook named `what`: it gives None instead of raising, and nothing once the hooks are off."""
        body = hook_body(what, body)

        @functools.wraps(body)
        def hook(*args: Any, **kwargs: Any) -> Any:
            if not self.are_on:
                return None
            try:
                return body(*args, **kwargs)
            except BaseException as problem:
                self.fail(what, problem)
                return None

        return hook

    def wrap(
        self,
        owner: Any,
        name: str,
        what: str,
        *,
        before: Callable[..., Any] | None = None,
        after: Callable[..., Any] | None = None,
        raised: Callable[..., Any] | None = None,
        stands_in: bool = False,
        tidy: Callable[[BaseException], None] | None = None,
    ) -> None:
        """Call our hooks around the function `owner.name`, which does and raises exactly what it did.

        `before(args, kwargs)` may give a token, which `after(token, result, args, kwargs)` and
        `raised(token, problem, args, kwargs)` receive. The result is handed on untouched. `stands_in` is for a function that
        may warn: its warnings then have the place they would have without us. `tidy` takes further frames, which are there on
        our account, out of the traceback of what was raised; it is no hook, since it has to be done though hooks fail.
        """
        held = inspect.getattr_static(owner, name, None)
        method = type(held) if isinstance(held, (staticmethod, classmethod)) else None
        original = held.__func__ if isinstance(held, (staticmethod, classmethod)) else getattr(owner, name)
        begin = self.guarded(f"{what}.before", before) if before else None
        finish = self.guarded(f"{what}.after", after) if after else None
        broke = self.guarded(f"{what}.raised", raised) if raised else None

        @functools.wraps(original)
        def observed(*args: Any, **kwargs: Any) -> Any:
            token = begin(args, kwargs) if begin else None
            try:
                if stands_in:
                    result = stand_in(sys._getframe(1))(original, args, kwargs)
                else:
                    result = original(*args, **kwargs)
            except BaseException as problem:
                if broke:
                    broke(token, problem, args, kwargs)
                # A traceback that the program prints must not show our frames; a bare `raise` does not add this one again.
                problem.__traceback__ = _behind(problem.__traceback__, 1 + stands_in)
                if tidy:
                    tidy(problem)
                raise
            if finish:
                finish(token, result, args, kwargs)
            return result

        self.patch(owner, name, method(observed) if method else observed)


def _behind(place: TracebackType | None, frames: int) -> TracebackType | None:
    for _ in range(frames):
        place = place.tb_next if place is not None else None
    return place


def hook_body(what: str, body: Callable[..., Any]) -> Callable[..., Any]:
    """`body` itself. The failure harness patches this to make the hook named `what` raise."""
    return body
