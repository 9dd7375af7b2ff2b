"""The changes that mend it, the first choice first."""

from __future__ import annotations

from gradwhy.fix.rewriting import ask_trainable_only, make_trainable

FIXES = (
    make_trainable,
    ask_trainable_only,
)
