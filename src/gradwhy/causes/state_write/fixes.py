"""The changes that mend it, the first choice first."""

from __future__ import annotations

from gradwhy.fix.state import keep_value

FIXES = (keep_value,)
