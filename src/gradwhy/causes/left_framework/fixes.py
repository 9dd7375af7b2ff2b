"""The changes that mend it, the first choice first."""

from __future__ import annotations

from gradwhy.fix.functional import native_numpy
from gradwhy.fix.rewriting import stay_in_framework

FIXES = (
    stay_in_framework,
    native_numpy,
)
