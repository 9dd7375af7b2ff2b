"""Where in a backward pass a gradient turned zero, not finite or missing."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence

from gradwhy.backends.torch import ops
from gradwhy.backends.torch.lineage import ancestry
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
        self._received = look.received if look is not None else {}
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
            is_start = self._begins_at_zero(call, value) or _is_of_zero_data(call, value)
            return None if is_start else Barrier.FLAT
        if all(status is Status.NONE for status in passed) and isinstance(call.func, str):
            return Barrier.CUSTOM
        return None

    def _begins_at_zero(self, call: Call, value: Record) -> bool:
        """Whether an op multiplies `value` by something that is zero and gets a gradient itself, so that it will not stay so.

        Low-rank adapters and gated branches begin like that on purpose.
        """
        if ops.name_of(call.func).strip("_") not in ops.PRODUCTS:
            return False
        factors = [edge[1] for edge in call.inputs if edge[1] is not value and edge[2]]
        return any(self._moves(found) for factor in factors for found in ancestry([factor]))

    def _moves(self, record: Record) -> bool:
        """Whether a leaf received a gradient that is not zero."""
        return record.watched is not None and self._received.get(self._tensor_ids.get(id(record), 0)) is Status.OK

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


def _is_of_zero_data(call: Call, value: Record) -> bool:
    """Whether a weight itself is multiplied by what depends on nothing: a state that begins with zeros, an empty feature."""
    if value.watched is None:
        return False
    name = ops.name_of(call.func).strip("_")
    is_given = all(edge[1].watched is not None or not edge[2] for edge in call.inputs)
    return name in ops.RECURRENT or (name in ops.PRODUCTS and is_given)


def _sequence(call: Call) -> int:
    return call.sequence
