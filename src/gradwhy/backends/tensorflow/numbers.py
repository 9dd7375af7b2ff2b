"""What a tensor holds, in numbers."""

from __future__ import annotations

from typing import Any

from gradwhy.flow import Numbers

MOST_VALUES = 256
"""How many of an array's values are kept, from its first on."""


def numbers_of(value: Any) -> Numbers | None:
    """The numbers of a tensor, or of the rows of a sparse gradient; None for what holds none yet, or no real ones."""
    if hasattr(value, "indices") and hasattr(value, "values"):
        value = value.values
    if not hasattr(value, "_numpy_internal"):
        return None
    array = value._numpy_internal()
    if array.dtype.kind not in "fiu":
        return None
    flat = array.astype("float64").reshape(-1)
    return Numbers(tuple(map(int, array.shape)), float(flat.dot(flat)) ** 0.5, tuple(flat[:MOST_VALUES].tolist()))
