"""The changes that mend it, the first choice first."""

from __future__ import annotations

from gradwhy.fix.functional import mark_auxiliary

FIXES = (mark_auxiliary,)
