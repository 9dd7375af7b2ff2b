"""The changes that mend it, the first choice first."""

from __future__ import annotations

from gradwhy.fix.rewriting import unwrap

FIXES = (unwrap,)
