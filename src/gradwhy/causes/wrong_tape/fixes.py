"""The changes that mend it, the first choice first."""

from __future__ import annotations

from gradwhy.fix.once import compute_where_used, drop_cache
from gradwhy.fix.rewriting import make_persistent

FIXES = (
    make_persistent,
    drop_cache,
    compute_where_used,
)
