"""Where in a backward pass a gradient turned zero, not finite or missing."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence

from gradwhy.backends.torch.look import Look, Passing
from gradwhy.backends.torch.trail import Call, Record
from gradwhy.flow import Barrier, Status


class Turns:
    """What a full look saw, told for the ops of a flow graph.

    Autograd numbers its nodes as they are made. An op of ours may have made several; they are those whose number lies below
    the one that autograd would have given after the op, and not below that of the op before it. `tensor_ids` maps a record's
    id to that of its tensor, by which the look knows a leaf.
    """

    def __init__(self, look: Look | None, calls: Sequence[Call], tensor_ids: dict[int, int]) -> None:
        self._calls = sorted((call for call in calls if call.is_recorded and call.sequence > 0), key=_sequence)
        self._sequences = [call.sequence for call in self._calls]
        self._given: dict[int, list[Status]] = defaultdict(list)
        self._passed: dict[tuple[int, int | None], list[Status]] = defaultdict(list)
        self._tensor_ids = tensor_ids
        if look is not None:
            self._read(look)

    def at(self, call: Call, value: Record) -> Barrier | None:
        """What happened to the gradient between an op and one of its inputs, where it came in whole and went out broken."""
        given = self._given.get(id(call), [])
        key = id(value.call) if value.call is not None and value.call.is_recorded else self._tensor_ids.get(id(value))
        passed = self._passed.get((id(call), key), [])
        if not passed or Status.OK not in given or Status.NAN in given:
            return None
        if Status.NAN in passed:
            return Barrier.NOT_FINITE
        if all(status is Status.ZERO for status in passed):
            return Barrier.FLAT
        if all(status is Status.NONE for status in passed) and isinstance(call.func, str):
            return Barrier.CUSTOM
        return None

    def _read(self, look: Look) -> None:
        inside: set[int] = set()
        for passing in look.passings:
            call = self._call_of(passing.sequence)
            inside.update(
                key
                for key, is_leaf, _ in passing.inputs
                if not is_leaf and call is not None and self._call_of(key) is call
            )
        for passing in look.passings:
            call = self._call_of(passing.sequence)
            if call is not None:
                self._note(call, passing, is_entry=passing.sequence not in inside)

    def _note(self, call: Call, passing: Passing, *, is_entry: bool) -> None:
        if is_entry:
            self._given[id(call)].append(passing.given)
        for key, is_leaf, status in passing.inputs:
            if is_leaf:
                self._passed[id(call), key].append(status)
                continue
            following = self._call_of(key)
            if following is not call:
                self._passed[id(call), id(following)].append(status)

    def _call_of(self, sequence: int) -> Call | None:
        position = bisect_right(self._sequences, sequence)
        return self._calls[position] if position < len(self._calls) else None


def _sequence(call: Call) -> int:
    return call.sequence
