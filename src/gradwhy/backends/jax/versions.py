"""Which releases of JAX this backend knows."""

from __future__ import annotations

import jax

OLDEST = (0, 10)
BEFORE = (0, 11)


def version() -> str:
    """The version of JAX that the program imported."""
    return str(jax.__version__)


def is_known() -> bool:
    """Whether the facts that this backend stands on were established for the imported release."""
    release: tuple[int, ...] = jax.__version_info__
    return OLDEST <= release[:2] < BEFORE
