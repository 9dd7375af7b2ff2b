"""Maps frames of the code that AutoGraph generated back to the user's own lines."""

from __future__ import annotations

import ast
from typing import Any

from gradwhy.backends.tensorflow.frames import RawFrames
from gradwhy.flow import Place, Span
from gradwhy.source.files import read, shown_path
from gradwhy.source.locate import span_of_syntax
from gradwhy.source.positions import is_user_file, places_of

_GENERATED = "__autograph_generated_file"


def is_generated(path: str) -> bool:
    """Whether a file is one that AutoGraph wrote."""
    return _GENERATED in path


def mapped_places(frames: RawFrames, tf_stack: Any, called: str = "") -> tuple[Place, ...]:
    """The user's places of the running stack, `frames` being its user frames as Python sees them.

    Only TensorFlow's own stack knows what AutoGraph made of which line, and it knows no columns. `called` names the method
    that the innermost frame calls, so that the call's own span can be found in its line.
    """
    if not any(is_generated(code.co_filename) for code, _ in frames):
        return places_of(frames)
    found = _matching(places_of_stack(tf_stack.extract_stack()), [_name(code.co_name) for code, _ in frames])
    if called and found:
        first = found[0]
        found = (Place(call_in_line(first.span, called) or first.span, first.function), *found[1:])
    return found


def _matching(places: tuple[Place, ...], names: list[str]) -> tuple[Place, ...]:
    """The part of TensorFlow's stack that shows the frames of these names, innermost first.

    TensorFlow's stack also holds what runs on our behalf since the question was put, and what started the program.
    """
    size = len(names)
    for start in range(len(places) - size + 1):
        if [place.function for place in places[start : start + size]] == names:
            return places[start : start + size]
    return places[-size:]


def _name(generated: str) -> str:
    return generated.removeprefix("tf__")


def places_of_stack(stack: Any) -> tuple[Place, ...]:
    """The user's lines in a stack of TensorFlow's, innermost first."""
    found = []
    for frame in reversed(stack or ()):
        path = frame.filename
        if not path.startswith("<frozen") and is_user_file(path) and not is_generated(path):
            found.append(Place(Span(shown_path(frame.filename), frame.lineno), frame.name))
    return tuple(found)


def call_in_line(span: Span, called: str) -> Span | None:
    """The span of the one call of `called` that begins in a line; None where there are none or several."""
    file = read(span.file)
    if file is None or file.tree is None:
        return None
    calls = [
        part
        for part in ast.walk(file.tree)
        if isinstance(part, ast.Call)
        and part.lineno <= span.line <= (part.end_lineno or part.lineno)
        and (getattr(part.func, "attr", None) or getattr(part.func, "id", None)) == called
    ]
    return span_of_syntax(file, calls[0], span.file) if len(calls) == 1 else None
