"""A framework that has nothing but questions: `gradient` answers what its caller tells it to."""

from __future__ import annotations

from collections.abc import Callable

__version__ = "1.0"
hook: Callable[[tuple[str, ...]], None] | None = None


def gradient(*statuses: str) -> list[str]:
    """A gradient for each status: "none", "zero", "nan" or "ok"."""
    if hook is not None:
        hook(statuses)
    return list(statuses)
