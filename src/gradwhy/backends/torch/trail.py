"""The records: values, and the ops that made them."""

from __future__ import annotations

import weakref
from types import CodeType
from typing import Any, NamedTuple

from torch import Tensor

from gradwhy.backends.torch.grad_mode import Pause
from gradwhy.flow import Unrecorded

Frames = tuple[tuple[CodeType, int], ...]
Edge = tuple[int | str, "Record", bool, bool]
"""An input: its place among the arguments, the value, whether that asked for a gradient, whether it was written there."""


class Call:
    """One op: what ran, where, on what.

    `func` is what was called, or a name for what is no function of PyTorch's. `sequence` is the number that autograd would
    give to the next op, so that the ops of a backward pass can be told apart. `is_direct` says that the user's own line
    called the function. `host` is what came in from outside the framework, as far as it may have left it before. `backward` is
    the code of the gradient function that the program wrote for it.
    """

    __slots__ = (
        "backward",
        "frames",
        "func",
        "host",
        "inputs",
        "is_condensed",
        "is_direct",
        "is_recorded",
        "pause",
        "sequence",
        "time",
    )

    def __init__(self, func: Any, inputs: tuple[Edge, ...], time: int, frames: Frames) -> None:
        self.func = func
        self.inputs = inputs
        self.time = time
        self.frames = frames
        self.is_direct = True
        self.pause: Pause | None = None
        self.is_recorded = False
        self.sequence = -1
        self.host: tuple[HostInput, ...] = ()
        self.is_condensed = False
        self.backward: CodeType | None = None


class HostInput:
    """A host value that an op read, and the exits it may be: observed ones, or candidates that the text has to confirm."""

    __slots__ = ("exits", "is_observed", "slot")

    def __init__(self, slot: int | str, exits: tuple[Record, ...], *, is_observed: bool) -> None:
        self.slot = slot
        self.exits = exits
        self.is_observed = is_observed


class Write(NamedTuple):
    """When and where something was written; no more is kept, since it would keep all that was written alive."""

    time: int
    frames: Frames
    is_in_part: bool = False


class Memory:
    """What tensors of the same memory share: the last write into it that carries a value on, and the last writes of any kind."""

    __slots__ = ("write", "writes")

    def __init__(self) -> None:
        self.write: Record | None = None
        self.writes: tuple[Write, ...] = ()


class Record:
    """One value: the op that made it, None for a beginning, and what was known of it then.

    `family` is equal for tensors of one memory that autograd knows to be views of each other. `watched` says since when,
    and by which line, it asks for a gradient. `switched` is the line by
    which it last ceased to, `cleared_by` the call that emptied all gradients, this one, too. `used` is where it was read last, `cleared` when its gradient was taken away.
    `is_alive` is False once its tensor is gone or has become something else.
    """

    __slots__ = (
        "call",
        "cleared",
        "cleared_by",
        "dtype",
        "family",
        "index",
        "is_alive",
        "is_parameter",
        "memory",
        "requires_grad",
        "switched",
        "unrecorded",
        "used",
        "was_watched",
        "watched",
    )

    def __init__(self, call: Call | None, dtype: Any, requires_grad: bool = False, index: int = 0) -> None:
        self.call = call
        self.index = index
        self.dtype = dtype
        self.requires_grad = requires_grad
        self.memory: Memory | None = None
        self.family: object = None
        self.used: Frames = ()
        self.watched: tuple[int, Frames] | None = None
        self.switched: Frames = ()
        self.cleared = 0
        self.cleared_by: Frames = ()
        self.is_alive = True
        self.is_parameter = False
        self.was_watched = False
        self.unrecorded: Unrecorded | None = None


class Tie(weakref.ref[Tensor]):
    """Holds the record of a tensor while that lives."""

    __slots__ = ("key", "record")
    key: int
    record: Record


class Fixed:
    """Holds the record of a tensor that must have no weak reference: a parameter, another leaf, a subclass.

    `torch.utils.swap_tensors` refuses a tensor that has one. Without it a death is not seen; the entry is good until another
    tensor is born with the same id.
    """

    __slots__ = ("record",)

    def __init__(self, record: Record) -> None:
        self.record = record
