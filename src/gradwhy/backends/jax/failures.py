"""What the exceptions with which JAX answers a question say, in neutral words."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import jax

from gradwhy.backends.jax.asking import Asking
from gradwhy.backends.jax.record import Frames, Recorder, ValueRecord, frames_of_traceback, innermost
from gradwhy.flow import Failure
from gradwhy.source import positions

# The wording of JAX 0.10; an exception that says something else is the program's own.
_WORDINGS = (
    ("integer-dtype", TypeError, re.compile(r"(?:grad|jacrev|jacfwd|vjp) requires (?:real|numerical)")),
    ("non-scalar-target", TypeError, re.compile(r"Gradient only defined for scalar-output functions")),
    (
        "no-gradient-registered",
        ValueError,
        re.compile(r"Reverse-mode differentiation does not work for lax\.(?P<op>while)"),
    ),
    (
        "no-gradient-registered",
        NotImplementedError,
        re.compile(r"Differentiation rule for '(?P<op>[^']+)' not implemented"),
    ),
    ("left-framework", ValueError, re.compile(r"(?P<op>Pure|IO) callbacks do not support JVP")),
    ("custom-gradient", jax.errors.UnexpectedTracerError, re.compile(r"nondiff_argnums")),
)
_TO_HOST = (jax.errors.TracerArrayConversionError, jax.errors.ConcretizationTypeError)


@dataclass(frozen=True, slots=True)
class HostExit:
    """A traced value that NumPy or Python asked for, and where.

    `value` is None where it was never recorded, `trace` what JAX was doing with it.
    """

    value: ValueRecord | None
    trace: object
    frames: Frames
    what: str


def host_exit(problem: BaseException, recorder: Recorder) -> HostExit | None:
    """The value that could not leave JAX, told from the frames that the exception passed."""
    if not isinstance(problem, _TO_HOST):
        return None
    found, what, raised = None, "", problem.__traceback__
    while raised is not None:
        if positions.is_user_code(raised.tb_frame.f_code):
            found = None
        elif found is None:
            # The first frame of JAX's own below the user's last is the method that the host called.
            found, what = _tracer_in(raised.tb_frame.f_locals), raised.tb_frame.f_code.co_name
        raised = raised.tb_next
    if found is None:
        return None
    return HostExit(
        recorder.of(found),
        getattr(innermost(found), "_trace", None),
        frames_of_traceback(problem.__traceback__),
        _shown(what),
    )


def recognised(problem: BaseException, asking: Asking) -> Failure | None:
    """The failure that an exception stands for; None where it has nothing to do with gradients."""
    name, message = type(problem).__name__, str(problem)
    if isinstance(problem, _TO_HOST):
        left = asking.host_exit
        return Failure(name, message, "left-framework", left.what) if left and _is_about(left, asking) else None
    for kind, type_, wording in _WORDINGS:
        match = wording.search(message) if isinstance(problem, type_) else None
        if match:
            op = match.groupdict().get("op")
            return Failure(name, message, kind, op.lower() if op else None)
    return None


def _is_about(left: HostExit, asking: Asking) -> bool:
    """Whether a value that left was made of what is differentiated, as far as can be told.

    The body of a compiled function is traced on values of its own, which carry no mark of the differentiation.
    """
    is_marked = left.value is not None and asking.tag in left.value.tags
    # What the differentiated function was given by the compiled one around it is no part of its argument.
    return is_marked or not any(left.trace is getattr(innermost(a), "_trace", None) for a in asking.arrays)


def _tracer_in(values: dict[str, Any]) -> Any:
    return next((v for v in values.values() if isinstance(v, jax.core.Tracer)), None)


def _shown(method: str) -> str:
    return {"__float__": "float", "__array__": "numpy", "__complex__": "complex"}.get(method, "numpy")
