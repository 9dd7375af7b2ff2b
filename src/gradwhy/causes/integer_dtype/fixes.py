"""The changes that mend it, the first choice first."""

from __future__ import annotations

from gradwhy.fix.rewriting import make_float

FIXES = (make_float,)
