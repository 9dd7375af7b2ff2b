"""Calls that look, to Python's warnings, as if the program had made them itself."""

from __future__ import annotations

from collections.abc import Callable
from types import CodeType, FrameType, FunctionType
from typing import Any

from gradwhy.source.positions import STAND_IN

StandIn = Callable[[Callable[..., Any], tuple[Any, ...], dict[str, Any] | None], Any]

_MOST = 8_000
_known: dict[tuple[int, int], tuple[CodeType, StandIn]] = {}


# One line: then every instruction has the line at which the code is said to begin.
# fmt: off
def _call(function: Any, args: Any, kwargs: Any) -> Any: return function(*args, **kwargs) if kwargs else function(*args)
# fmt: on


def stand_in(frame: FrameType) -> StandIn:
    """What calls a function in a frame that has the file, the line and the globals of `frame`.

    A warning is told with the place of the frame that runs, and is shown once a place. With a frame of ours between the
    program and what it called, all of its warnings would come from one place, and that ours.
    """
    code = frame.f_code
    key = (id(code), frame.f_lasti)
    known = _known.get(key)
    if known is not None and known[1].__globals__ is frame.f_globals:
        return known[1]
    return _make(key, frame)


def _make(key: tuple[int, int], frame: FrameType) -> StandIn:
    if len(_known) >= _MOST:
        _known.clear()
    code = frame.f_code
    looks = _call.__code__.replace(
        co_filename=code.co_filename,
        co_firstlineno=frame.f_lineno or code.co_firstlineno,
        co_name=code.co_name,
        co_qualname=STAND_IN,
    )
    made: StandIn = FunctionType(looks, frame.f_globals)
    # The code is kept: its id is only good while it lives.
    _known[key] = (code, made)
    return made
