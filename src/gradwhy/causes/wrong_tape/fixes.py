"""The changes that mend it, the first choice first."""

from __future__ import annotations

from gradwhy.fix.once import compute_where_used, drop_cache
from gradwhy.fix.rewriting import make_persistent
from gradwhy.fix.tracking import ask_recording_tape

FIXES = (
    make_persistent,
    ask_recording_tape,
    drop_cache,
    compute_where_used,
)
