"""The changes that mend it, the first choice first."""

from __future__ import annotations

from gradwhy.fix.moving import out_of_pause

FIXES = (out_of_pause,)
