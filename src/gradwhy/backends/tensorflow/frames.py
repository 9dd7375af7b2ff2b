"""Where an op ran: the user's frames behind it, and what stands between them and the op."""

from __future__ import annotations

from types import CodeType, FrameType
from typing import Any

from gradwhy.source.positions import is_user_code, is_user_file

RawFrames = tuple[tuple[CodeType, int], ...]

_MOST_FRAMES = 16
_MOST_FILES = 50_000

_OWN, _LIBRARY, _MIXED, _RUNNER, _LANDMARK = range(5)
# Keyed by file name: a string remembers its hash, a code object works it out each time.
_kinds: dict[str, int] = {}
_landmarks: dict[str, CodeType] = {}


def set_landmark(code: CodeType) -> None:
    """Whoever runs `code` has had the frames behind it walked: `walk` may take them as given."""
    _landmarks[code.co_filename] = code
    _kinds[code.co_filename] = _LANDMARK


def _judge(path: str) -> int:
    """Whose file it is: TensorFlow's own, which hides nothing, another library's, one with the user's code, the runner's."""
    if len(_kinds) >= _MOST_FILES:
        _kinds.clear()
        _kinds.update(dict.fromkeys(_landmarks, _LANDMARK))
    name = path.replace("\\", "/")
    if name.startswith("<") or is_user_file(path):
        # What Python or a library compiles under such a name is told apart code by code.
        kind = _MIXED
    elif name.endswith("/gradwhy/running/program.py"):
        kind = _RUNNER
    else:
        kind = _OWN if "/tensorflow/python/" in name or "/gradwhy/" in name or "/wrapt/" in name else _LIBRARY
    _kinds[path] = kind
    return kind


def walk(frame: FrameType | None, outer: RawFrames | None = None) -> tuple[RawFrames, bool]:
    """The user's frames from `frame` outwards, and whether nothing but TensorFlow's own code stands before the first.

    `outer` holds the user's frames behind the innermost landmark. This runs for every op, some twenty frames deep: what is
    inlined here is most of what observing costs.
    """
    kinds = _kinds
    mine = True
    found: list[tuple[CodeType, int]] = []
    while frame is not None:
        code = frame.f_code
        try:
            kind = kinds[code.co_filename]
        except KeyError:
            kind = _judge(code.co_filename)
        if kind:
            if kind == 2 and is_user_code(code):
                found.append((code, frame.f_lasti))
                if len(found) == _MOST_FRAMES:
                    break
            elif kind == 3:
                break
            elif kind == 4 and outer is not None and code is _landmarks[code.co_filename]:
                return ((*found, *outer)[:_MOST_FRAMES], mine) if found else (outer, False)
            elif not found:
                mine = False
        frame = frame.f_back
    return (tuple(found), mine) if found else ((), False)


_writers: dict[int, tuple[CodeType, bool]] = {}


def _writes_for_others(code: CodeType) -> bool:
    """Whether the code is the machinery of a variable, through which somebody else writes."""
    known = _writers.get(id(code))
    if known is None:
        name = code.co_filename.replace("\\", "/")
        own = "/tensorflow/python/" in name or "/gradwhy/" in name or "/wrapt/" in name
        machinery = name.endswith(("/keras/src/backend/common/variables.py", "/keras/src/backend/tensorflow/core.py"))
        # A metric keeps what the user's own code gives it, unless a trainer stands in between.
        machinery = machinery or "/keras/src/metrics/" in name
        known = _writers[id(code)] = (code, own or machinery)
    return known[1]


def writing_frame(frame: FrameType | None) -> FrameType | None:
    """The user's frame that asked for a write; None where a library wrote for its own ends."""
    while frame is not None and _writes_for_others(frame.f_code):
        frame = frame.f_back
    return frame if frame is not None and is_user_code(frame.f_code) else None


_arguments: dict[int, tuple[CodeType, tuple[str, ...]]] = {}


def argument(frame: FrameType, position: int, many: int) -> Any:
    """What the calling `gen_*_ops` function was given for input number `position`, None where it cannot be told."""
    code = frame.f_code
    known = _arguments.get(id(code))
    if known is None:
        is_generated = code.co_filename.endswith("_ops.py") and "gen_" in code.co_filename
        known = _arguments[id(code)] = (code, code.co_varnames[: code.co_argcount] if is_generated else ())
    names = known[1]
    if not names:
        return None
    given = frame.f_locals
    if position < len(names):
        value = given.get(names[position])
        if not isinstance(value, (list, tuple)):
            return value
    # A list of inputs stands in one argument, before or after single ones.
    flat: list[Any] = []
    for name in names:
        value = given.get(name)
        flat.extend(value if isinstance(value, (list, tuple)) else [value])
    return flat[position] if position < len(flat) else None
