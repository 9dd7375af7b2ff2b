"""What a call was given and what it gave, read without asking a tensor for more than its type."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from types import FrameType
from typing import Any

import torch
from torch import Tensor

from gradwhy.backends.torch.trail import Frames

_THIN = frozenset(module.__file__ for module in (torch.overrides, torch._tensor, torch.functional, torch.nn.functional))


def ids_of_given(args: Iterable[Any], kwargs: dict[str, Any] | None) -> set[int]:
    """The ids of the tensors that were given, lists of them included."""
    found: set[int] = set()
    for given in args if not kwargs else (*args, *kwargs.values()):
        if isinstance(given, Tensor):
            found.add(id(given))
        elif type(given) in (tuple, list):
            found.update(id(part) for part in given if isinstance(part, Tensor))
    return found


def tensors_in(result: Any) -> tuple[Tensor, ...]:
    """The tensors among what a function gave, nested tuples and lists included."""
    if isinstance(result, Tensor):
        return (result,)
    return tuple(_parts(result)) if isinstance(result, (tuple, list)) else ()


def _parts(result: Iterable[Any]) -> Iterator[Tensor]:
    for part in result:
        if isinstance(part, Tensor):
            yield part
        elif isinstance(part, (tuple, list)):
            yield from _parts(part)


def is_direct(frame: FrameType | None, frames: Frames) -> bool:
    """Whether the user's own line called the function, seen through the function's own Python and what hands it to us."""
    if frame is not None and frames and frame.f_code is frames[0][0]:
        return True
    while frame is not None and frame.f_code.co_filename in _THIN:
        frame = frame.f_back
    return frame is not None and bool(frames) and frame.f_code is frames[0][0]
