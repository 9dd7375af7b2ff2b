"""Fixes: what change would let the gradient arrive, how it is shown, and how it is written."""
