"""Programs run under gradwhy in a process of their own, and what the report says of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from forkserver import ForkServer
from observed import Ran, run_both


@pytest.fixture
def run(server_of: Callable[[str], ForkServer], tmp_path: Path) -> Callable[[str], Ran]:
    """Run a program, after lines that import PyTorch and set its seed, plain and observed."""
    return lambda text: run_both(server_of("torch"), tmp_path / "program.py", text)
