"""The changes that mend it, the first choice first."""

from __future__ import annotations

from gradwhy.fix.once import create_once
from gradwhy.fix.tracking import track_variable

FIXES = (
    create_once,
    track_variable,
)
