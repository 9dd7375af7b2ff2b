"""Which releases of PyTorch this backend knows."""

from __future__ import annotations

import re

import torch

OLDEST = (2, 13)
BEFORE = (2, 14)


def version() -> str:
    """The version of PyTorch that the program imported."""
    return str(torch.__version__)


def is_known() -> bool:
    """Whether the facts that this backend stands on were established for the imported release."""
    found = re.match(r"(\d+)\.(\d+)", version())
    return found is not None and OLDEST <= (int(found[1]), int(found[2])) < BEFORE
