"""Which backend knows which framework: the one place where backends are listed."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import cast

from gradwhy.backends.contract import Backend

FACTORIES: Mapping[str, str] = {
    "tensorflow": "gradwhy.backends.tensorflow:create",
    "torch": "gradwhy.backends.torch:backend",
    "jax": "gradwhy.backends.jax:backend",
}
"""The name under which a framework is imported, and the function without arguments that makes its backend."""


def backend_of(framework: str, factories: Mapping[str, str] = FACTORIES) -> Backend:
    """A backend for a framework of the table; raises what importing it raises."""
    module, _, function = factories[framework].partition(":")
    return cast(Backend, getattr(importlib.import_module(module), function)())
