"""Which releases of JAX this backend knows."""

from __future__ import annotations

import jax

OLDEST = (0, 10)


def version() -> str:
    """The version of JAX that the program imported."""
    return str(jax.__version__)
