"""What the exceptions with which JAX answers a question say, in neutral words."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from types import CodeType, FrameType, ModuleType
from typing import Any

import jax

from gradwhy.backends.jax import definitions
from gradwhy.backends.jax.asking import Asking
from gradwhy.backends.jax.record import Frames, Recorder, ValueRecord, ancestry, frames_of_traceback, innermost
from gradwhy.flow import Failure, Span
from gradwhy.source import positions

# The wording of JAX 0.10; an exception that says something else is the program's own.
_WORDINGS = (
    (
        "integer-target",
        TypeError,
        re.compile(r"(?:grad|jacrev) requires real-valued outputs .* but got (?:u?int|bool)"),
    ),
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
    (
        "integer-dtype",
        TypeError,
        re.compile(r"is not a valid JAX type|Cannot interpret value of type .* abstract array"),
    ),
)
_TO_HOST = (
    jax.errors.TracerArrayConversionError,
    jax.errors.ConcretizationTypeError,
    jax.errors.TracerIntegerConversionError,
    jax.errors.NonConcreteBooleanIndexError,
)
_WITHOUT_RULE = {
    "left-framework": re.compile(r"(?P<op>Pure|IO) callbacks do not support JVP"),
    "no-gradient-registered": re.compile(r"Differentiation rule for '(?P<op>[^']+)' not implemented"),
}
_STATIC = re.compile(r"Non-hashable static arguments")
_LEAKED = re.compile(r"side effect, allowing for a reference to an intermediate value|leaked trace|escape the scope")
# The functions of JAX 0.10 in which it looks at the arguments that it will not differentiate, and what they are called there.
_STATIC_CHECK, _NONDIFF_CHECK = "_infer_params", "_check_for_tracers"


@dataclass(frozen=True, slots=True)
class Exit:
    """A traced value that went where JAX could not follow it, and where.

    `kind` is how the failure is called. `value` is None where it was never recorded, `trace` what JAX was doing with it.
    `declared` is the function of the program's that was told not to follow it, if one was.
    """

    kind: str
    value: ValueRecord | None
    trace: object
    frames: Frames
    what: str
    declared: CodeType | None = None

    @property
    def is_gone(self) -> bool:
        """Whether the value belongs to something that JAX had finished before."""
        return self.kind == "leaked"


def exit_of(problem: BaseException, recorder: Recorder) -> Exit | None:
    """The value that could not leave JAX, told from the frames that the exception passed."""
    if isinstance(problem, _TO_HOST):
        return _asked_for_by_host(problem, recorder)
    if isinstance(problem, ValueError) and _STATIC.search(str(problem)):
        frame = _library_frame(problem, _STATIC_CHECK)
        return _declared_exit("static-argument", frame, _static_tracer(frame), problem, recorder) if frame else None
    if isinstance(problem, jax.errors.UnexpectedTracerError):
        frame = _library_frame(problem, _NONDIFF_CHECK)
        if frame is not None:
            return _declared_exit("nondiff-argument", frame, frame.f_locals.get("x"), problem, recorder)
        if _LEAKED.search(str(problem)):
            return _leaked(problem, recorder)
    for kind, wording in _WITHOUT_RULE.items():
        match = wording.search(str(problem)) if isinstance(problem, (ValueError, NotImplementedError)) else None
        if match is not None:
            read = [a for a in recorder.here.failed if isinstance(a, jax.core.Tracer)]
            found = next((a for a in read if (known := recorder.of(a)) is not None and known.tags), None)
            return None if found is None else _exit(kind, found, problem, recorder, match["op"].lower())
    return None


def _asked_for_by_host(problem: BaseException, recorder: Recorder) -> Exit | None:
    found, what, raised = None, "", problem.__traceback__
    while raised is not None:
        if positions.is_user_code(raised.tb_frame.f_code):
            found = None
        elif found is None:
            # The first frame of JAX's own below the user's last is the method that the host called.
            found, what = _tracer_in(raised.tb_frame.f_locals), raised.tb_frame.f_code.co_name
        raised = raised.tb_next
    return None if found is None else _exit("left-framework", found, problem, recorder, _shown(what))


def _library_frame(problem: BaseException, function: str) -> FrameType | None:
    """The innermost frame of a function of that name which is not the user's."""
    found, raised = None, problem.__traceback__
    while raised is not None:
        code = raised.tb_frame.f_code
        if code.co_name == function and not positions.is_user_code(code):
            found = raised.tb_frame
        raised = raised.tb_next
    return found


def _static_tracer(frame: FrameType) -> Any:
    """The traced value among the arguments that a compiled function was told to take as fixed settings."""
    settings, args, kwargs = (frame.f_locals.get(name) for name in ("ji", "args", "kwargs"))
    given = [args[n] for n in getattr(settings, "static_argnums", ()) if args and -len(args) <= n < len(args)]
    given += [kwargs[n] for n in getattr(settings, "static_argnames", ()) if kwargs and n in kwargs]
    return given


def _declared_exit(kind: str, frame: FrameType, given: Any, problem: BaseException, recorder: Recorder) -> Exit | None:
    found = next((leaf for leaf in jax.tree_util.tree_leaves(given) if isinstance(leaf, jax.core.Tracer)), None)
    if found is None:
        return None
    declared = frame.f_locals.get("fun")
    code = getattr(inspect.unwrap(declared), "__code__", None) if callable(declared) else None
    is_users = isinstance(code, CodeType) and positions.is_user_code(code)
    name = code.co_name if isinstance(code, CodeType) and is_users else ""
    return _exit(kind, found, problem, recorder, name or "=", declared=code if is_users else None)


def _leaked(problem: BaseException, recorder: Recorder) -> Exit | None:
    """A value that was kept from an earlier call: a tracer that is no longer followed, in reach of the frames."""
    raised, found = problem.__traceback__, None
    while raised is not None:
        frame = raised.tb_frame
        names = (*frame.f_code.co_names, *frame.f_code.co_freevars, *frame.f_code.co_varnames)
        held = [scope[name] for scope in (frame.f_globals, frame.f_locals) for name in names if name in scope]
        found = next((v for v in _opened(held) if isinstance(v, jax.core.Tracer) and _is_over(v, recorder)), found)
        raised = raised.tb_next
    return None if found is None else _exit("leaked", found, problem, recorder, "=")


def _opened(held: Iterable[Any]) -> Iterator[Any]:
    """Some values, and what the lists, dicts and objects among them hold."""
    for value in held:
        yield value
        if isinstance(value, (list, tuple)):
            yield from value
        elif isinstance(value, dict):
            yield from value.values()
        elif not isinstance(value, (jax.core.Tracer, jax.Array, type, ModuleType)) and hasattr(value, "__dict__"):
            yield from vars(value).values()


def _is_over(tracer: Any, recorder: Recorder) -> bool:
    """Whether the question during which a tracer was made has ended."""
    record = recorder.of(tracer)
    return record is not None and record.maker is not None and any(s.end is not None for s in record.maker.open)


def _exit(
    kind: str, found: Any, problem: BaseException, recorder: Recorder, what: str, *, declared: CodeType | None = None
) -> Exit:
    trace = getattr(innermost(found), "_trace", None)
    return Exit(kind, recorder.of(found), trace, frames_of_traceback(problem.__traceback__), what, declared)


def recognised(problem: BaseException, asking: Asking) -> Failure | None:
    """The failure that an exception stands for; None where it has nothing to do with gradients."""
    name, message = type(problem).__name__, str(problem)
    left = asking.left
    if left is not None:
        failure = Failure(name, message, left.kind, left.what, span=_span_of(left))
        return failure if _is_about(left, asking) else None
    for kind, type_, wording in _WORDINGS:
        match = wording.search(message) if isinstance(problem, type_) else None
        if match:
            op = match.groupdict().get("op")
            if kind == "non-scalar-target" and asking.is_more_returned:
                op = "returns-more"
            return Failure(name, message, kind, op.lower() if op else None)
    return None


def _span_of(left: Exit) -> Span | None:
    """Where the program told JAX not to follow a value, or kept one for longer than JAX does."""
    if left.declared is not None:
        return definitions.header_of(left.declared)
    if left.is_gone and left.value is not None and left.value.maker is not None:
        return definitions.kept_at(left.value.maker.frames)
    return None


def _is_about(left: Exit, asking: Asking) -> bool:
    """Whether a value that left was made of what is differentiated, as far as can be told.

    The body of a compiled function is traced on values of its own, which carry no mark of the differentiation.
    """
    is_marked = left.is_gone or is_made_of_sources(left, asking)
    # What the differentiated function was given by the compiled one around it is no part of its argument.
    return is_marked or not any(left.trace is getattr(innermost(a), "_trace", None) for a in asking.arrays)


def is_made_of_sources(left: Exit, asking: Asking) -> bool:
    """Whether a value that left is known to be made of what is differentiated."""
    if left.value is None:
        return False
    sources = frozenset(id(t) for t in asking.tracers if t is not None)
    return asking.tag in left.value.tags or not sources.isdisjoint(ancestry(left.value, sources))


def _tracer_in(values: dict[str, Any]) -> Any:
    return next((v for v in values.values() if isinstance(v, jax.core.Tracer)), None)


def _shown(method: str) -> str:
    return {"__float__": "float", "__array__": "numpy", "__complex__": "complex"}.get(method, "numpy")
