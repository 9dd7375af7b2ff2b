"""Why there is a cut: one folder a cause, found by its folder and listed nowhere.

A folder holds `recognise.py` (a function `recognise(lost)` that gives a `Claim` where the cause fits, and `GOES_BEFORE`, the
slugs of the causes that it outranks where both fit) and one page a language.
"""
