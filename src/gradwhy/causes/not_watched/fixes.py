"""The changes that mend it, the first choice first."""

from __future__ import annotations

from gradwhy.fix.rewriting import watch_first, watch_source, watch_value

FIXES = (
    watch_value,
    watch_first,
    watch_source,
)
