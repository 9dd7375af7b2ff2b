"""The changes that mend it, the first choice first."""

from __future__ import annotations

from gradwhy.fix.once import create_once

FIXES = (create_once,)
