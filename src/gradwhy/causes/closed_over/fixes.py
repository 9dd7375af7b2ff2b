"""The changes that mend it, the first choice first."""

from __future__ import annotations

from gradwhy.fix.functional import use_argument

FIXES = (use_argument,)
