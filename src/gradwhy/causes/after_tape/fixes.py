"""The changes that mend it, the first choice first."""

from __future__ import annotations

from gradwhy.fix.moving import under_recording

FIXES = (under_recording,)
