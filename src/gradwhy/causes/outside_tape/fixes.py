"""The changes that mend it, the first choice first."""

from __future__ import annotations

from gradwhy.fix.across import compute_inside
from gradwhy.fix.moving import into_recording
from gradwhy.fix.once import compute_where_used, drop_cache

FIXES = (
    drop_cache,
    compute_where_used,
    into_recording,
    compute_inside,
)
