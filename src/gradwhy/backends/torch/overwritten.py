"""Which write changed what a backward pass needed, and which op had kept it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from gradwhy.backends.torch import ops
from gradwhy.backends.torch.asking import Pass
from gradwhy.backends.torch.lineage import ancestry
from gradwhy.backends.torch.record import Recorder
from gradwhy.backends.torch.trail import Call, Record, Write

_NODE = re.compile(r"output (\d+) of (?:.*/)?(?:torch::autograd::)?(\w+)")
_VERSIONS = re.compile(r"is at version (\d+); expected version (\d+)")


@dataclass(frozen=True, slots=True)
class Lapse:
    """A value that was kept and written to: by which op, by which write. `key` is the id of a parameter that a step wrote."""

    value: Record
    kept_by: Call
    write: Write
    key: int | None = None


def find(recorder: Recorder, passed: Pass, problem: BaseException) -> Lapse | None:
    """The likeliest of the values behind a refused pass that were written to after an op of the pass had read or made them.

    PyTorch names the node that made the value and how many writes came after it was kept; of what fits equally well, the op that
    ran last is the one whose gradient is computed first.
    """
    message = str(problem)
    node = _NODE.search(message)
    versions = _VERSIONS.search(message)
    count = int(versions.group(1)) - int(versions.group(2)) if versions else None
    best: tuple[tuple[bool, bool, int], Lapse] | None = None
    for lapse, later in _lapses(recorder, passed):
        rank = (_is_named(lapse, node.group(2) if node else None), later == count, lapse.kept_by.time)
        if best is None or rank > best[0]:
            best = rank, lapse
    return best[1] if best is not None else None


def _lapses(recorder: Recorder, passed: Pass) -> Iterator[tuple[Lapse, int]]:
    """Every value that was written to after an op had it, with the number of those writes."""
    stepped = _stepped(recorder)
    records = list(ancestry(passed.targets))
    for record in records:
        call = record.call
        if call is None or not call.is_recorded:
            continue
        for value in (record, *(edge[1] for edge in call.inputs)):
            writes = value.memory.writes if value.memory is not None else ()
            later = [write for write in writes if write.time > call.time]
            if later:
                yield Lapse(value, call, later[0]), len(later)
            for write, key in stepped.get(id(value), ()):
                if write.time > call.time:
                    yield Lapse(value, call, write, key), 1
                    break


def _stepped(recorder: Recorder) -> dict[int, list[tuple[Write, int]]]:
    """The updates of each record of a parameter, by the record's id, the earliest first."""
    found: dict[int, list[tuple[Write, int]]] = {}
    for write, reference in recorder.writes.steps:
        optimizer = reference()
        for group in optimizer.param_groups if optimizer is not None else ():
            for parameter in group["params"]:
                record = recorder.known(parameter)
                if record is not None:
                    found.setdefault(id(record), []).append((write, id(parameter)))
    return found


def _is_named(lapse: Lapse, node: str | None) -> bool:
    """Whether the value is the output of a node of that name; of none, a leaf. A weight may be kept as a view of itself."""
    value = lapse.value
    if value.watched is not None or value.call is None:
        return node is None or node.startswith(("T", "AsStrided", "View", "Transpose", "Expand", "Permute"))
    made = ops.name_of(value.call.func).strip("_").replace("_", "").lower().removeprefix("i")
    return node is not None and node.lower().startswith(made)
