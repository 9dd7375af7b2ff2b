"""Whether a changed program's answer proves a fix."""

from __future__ import annotations

import math
from dataclasses import dataclass

from gradwhy.flow import Numbers, Proof, ProvedSource, Status, Text

CLOSE = 1e-5
"""How far two equal numbers of single precision may lie apart, relative to the larger."""


@dataclass(frozen=True, slots=True)
class AnswerSeen:
    """One answer to a question: the sources by name, what each got, and the target's numbers, where they could be read."""

    names: tuple[str, ...]
    statuses: tuple[Status, ...]
    gradients: tuple[Numbers | None, ...] = ()
    target: Numbers | None = None


def is_same(one: Numbers | None, other: Numbers | None) -> bool | None:
    """Whether two arrays are equal but for rounding; None where one could not be read."""
    if one is None or other is None:
        return None
    if one.shape != other.shape or len(one.first) != len(other.first):
        return False
    pairs = [(one.norm, other.norm), *zip(one.first, other.first, strict=True)]
    scale = max((abs(v) for pair in pairs for v in pair if math.isfinite(v)), default=0.0)
    return all(a == b or (a != a and b != b) or abs(a - b) <= CLOSE * scale for a, b in pairs)


def judge(
    before: AnswerSeen,
    after: AnswerSeen,
    *,
    wanted: frozenset[str],
    target: str,
    is_safe: bool,
    may_drop: bool,
    is_same_target: bool | None,
) -> Proof | Text:
    """The proof that the `wanted` sources now have their gradients and no other lost its own, or what speaks against it.

    `may_drop`: the change takes sources out of the question. `is_same_target` is None where that cannot be said.
    """
    place = _places(before, after)
    proved: dict[str, ProvedSource] = {}
    for number, name in enumerate(before.names):
        position = place[number]
        status = after.statuses[position] if position is not None else None
        if name in wanted:
            if status is not Status.OK and not (status is None and may_drop):
                return Text("fixes/problem/still-missing", {"name": name})
            if position is not None and status is not None:
                numbers = after.gradients[position] if position < len(after.gradients) else None
                proved[name] = _shown(status, numbers)
        elif before.statuses[number] is Status.OK and status is not Status.OK:
            return Text("fixes/problem/other-worse", {"name": name})
    if is_safe and is_same_target is False:
        return Text("fixes/problem/target-changed", {"target": target})
    return Proof(proved, is_same_target)


def _places(before: AnswerSeen, after: AnswerSeen) -> list[int | None]:
    """Where each source of the first answer stands in the second."""
    if len(before.names) == len(after.names):
        return list(range(len(before.names)))
    known = {name: number for number, name in reversed(list(enumerate(after.names)))}
    return [known.get(name) for name in before.names]


def _shown(status: Status, numbers: Numbers | None) -> ProvedSource:
    if numbers is None:
        return ProvedSource(status)
    return ProvedSource(status, numbers.shape, numbers.norm, numbers.first[:3])
