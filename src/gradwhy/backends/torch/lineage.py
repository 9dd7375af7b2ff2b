"""What a value was made from, as far as one question may follow it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gradwhy.backends.torch import ops
from gradwhy.backends.torch.trail import Call, Edge, Record
from gradwhy.host.links import confirmed

MOST_VISITED = 50_000


def ancestry(targets: Iterable[Record]) -> Iterable[Record]:
    """Everything that the targets were made from, themselves included, and values that left for the host and came back."""
    seen: dict[int, Record] = {}
    todo = list(targets)
    while todo and len(seen) < MOST_VISITED:
        record = todo.pop()
        if id(record) in seen:
            continue
        seen[id(record)] = record
        if record.call is not None:
            todo.extend(edge[1] for edge in record.call.inputs)
            todo.extend(exit for _, exit, _ in exits(record.call))
    return seen.values()


def exits(call: Call) -> Iterator[tuple[int | str, Record, bool]]:
    """The values that left the framework and came back as inputs of an op: the place, the value, whether it was observed."""
    for host in call.host:
        if host.is_observed:
            yield host.slot, host.exits[0], True
            continue
        back = call.frames[0] if call.frames else None
        for exit in host.exits:
            left = exit.call.frames[0] if exit.call is not None and exit.call.frames else None
            if confirmed(left, back):
                yield host.slot, exit, False


def own(targets: Iterable[Record]) -> frozenset[int]:
    """The ids of the values whose history is the question's own: reached through no write and no beginning of another graph.

    Through a write into a parameter every earlier step of a training loop would be reached; the gradients of those steps
    are a boundary.
    """
    seen: set[int] = set()
    todo = list(targets)
    while todo and len(seen) < MOST_VISITED:
        record = todo.pop()
        if id(record) in seen:
            continue
        seen.add(id(record))
        if record.call is not None and record.watched is None:
            todo.extend(edge[1] for edge in record.call.inputs if not edge[3])
    return frozenset(seen)


def edges(record: Record, own_values: frozenset[int]) -> tuple[Edge, ...]:
    """The inputs of the op that made a value; none where that is a gradient of an earlier step."""
    call = record.call
    if call is None or (call.func == ops.GRADIENT and id(record) not in own_values):
        return ()
    return call.inputs
