"""The changes that mend it, the first choice first."""

from __future__ import annotations

from gradwhy.fix.state import update_in_place

FIXES = (update_in_place,)
