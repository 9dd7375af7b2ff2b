"""The bodies of `py_function` in a graph: TensorFlow runs them on threads of its own, and asks a tape of its own about them.

What that tape lacks, TensorFlow hands on as zeros; so the question is none of the program's, and its answer is kept.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Sequence
from types import FrameType
from typing import Any

from gradwhy.flow import Barrier, Span
from gradwhy.host.reading import first_of, leaving_inside_function

_SCRIPT_OPS = "tensorflow.python.ops.script_ops"


def asked_for(frame: FrameType | None) -> str | None:
    """The token of the body about which TensorFlow itself asks in `frame`; None where somebody else asks."""
    if frame is None or frame.f_globals.get("__name__") != _SCRIPT_OPS:
        return None
    token = frame.f_locals.get("token")
    return token.decode() if isinstance(token, bytes) else None


def missing(answers: Sequence[Any]) -> set[int]:
    """The inputs of a body that get no gradient from it."""
    return {position for position, gradient in enumerate(answers) if gradient is None}


def token_of(op: Any) -> str | None:
    """The token of the body that a graph's op runs, None for any other op."""
    return str(op.get_attr("token").decode()) if op.type == "EagerPyFunc" else None


def way_out(token: str) -> tuple[Barrier, Span | None]:
    """Why a body passes no gradient on, as far as its text tells: the place where values leave the framework."""
    registered = sys.modules[_SCRIPT_OPS]._py_funcs.get(token)
    function = getattr(registered, "_func", None)
    leaving = leaving_inside_function(inspect.unwrap(function)) if callable(function) else ()
    return (Barrier.HOST, first_of(leaving)) if leaving else (Barrier.UNRECORDED, None)
