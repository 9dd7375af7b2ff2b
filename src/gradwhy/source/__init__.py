"""The user's Python: positions, names, statements."""
