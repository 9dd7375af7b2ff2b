"""Writes into the memory of tensors: which of them autograd follows, which later reads see, which a backward pass misses."""

from __future__ import annotations

import weakref
from collections import deque
from types import FrameType
from typing import TYPE_CHECKING, Any

from torch import Tensor
from torch.optim.optimizer import Optimizer

from gradwhy.backends.torch import ops
from gradwhy.backends.torch.trail import Call, Frames, Memory, Record, Write

if TYPE_CHECKING:
    from gradwhy.backends.torch.record import Recorder

MOST_WRITES = 8
"""How many writes into one memory are kept: what a backward pass misses is nearly always among the last."""


class Writes:
    """The writes of one run. `steps` are the last updates that optimizers made, which write without telling."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self.steps: deque[tuple[Write, weakref.ref[Optimizer]]] = deque(maxlen=MOST_WRITES)

    def write(self, tensor: Tensor, call: Call) -> None:
        """`call` wrote into the memory of `tensor`.

        What autograd follows, or what belongs to the same pause as the tensor itself, is one more version of the tensor.
        Anything else is a write into state: the tensor stays what it was, and later reads of its memory see the write.
        """
        recorder = self._recorder
        before = recorder.of(tensor)
        memory = self._note(before, call)
        requires_grad = tensor.requires_grad
        written = Record(call, tensor.dtype, requires_grad)
        written.memory, written.family = memory, before.family
        call.is_recorded = call.is_recorded or (requires_grad and not tensor.is_leaf)
        pause = call.pause
        is_version = before.watched is None if pause is None else before.call is not None and before.call.pause is pause
        if is_version:
            recorder.keep(tensor, written, is_leaf=False)
        elif all(edge[1] is before for edge in call.inputs):
            # It was filled with what came from no other value.
            return
        else:
            # The write is what later reads see; that it was not recorded follows from its being a write.
            call.pause = None
            call.is_recorded = False
            written.family = None
            recorder.history.add(written)
        if memory.write is not None:
            memory.write.is_alive = False
        memory.write = written

    def _note(self, before: Record, call: Call) -> Memory:
        if before.memory is None:
            self.share(before, before, is_detached=False)
        memory = before.memory
        assert memory is not None
        # What is written through a view of the tensor, or through an index, changes some of its elements only.
        is_in_part = call.func == ops.SET_ITEM or (before.call is not None and before.call.func in ops.ALIASING)
        memory.writes = (*memory.writes[1 - MOST_WRITES :], Write(call.time, call.frames, is_in_part))
        return memory

    def set_item(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any, frame: FrameType) -> None:
        """`x[index] = value`."""
        self.write(args[0], self._recorder.call(func, args, kwargs, frame))

    def set_data(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any, frame: FrameType) -> None:
        """`x.data = value`: the tensor stays, its memory is another."""
        tensor, value = args[:2]
        recorder = self._recorder
        call = recorder.call(func, (None, value), None, frame)
        call.pause = None
        record = recorder.of(tensor)
        record.dtype = tensor.dtype
        record.memory = Memory()
        record.memory.write = Record(call, tensor.dtype)
        record.family = object()
        recorder.history.add(record.memory.write)

    def share(self, record: Record, other: Record, *, is_detached: bool) -> None:
        """Let `record` be of the memory of `other`."""
        if other.memory is None:
            other.memory = Memory()
            other.family = object()
        record.memory = other.memory
        record.family = object() if is_detached else other.family

    def stepped(self, optimizer: Optimizer, time: int, frames: Frames) -> None:
        """An optimizer has written all that it holds."""
        self.steps.append((Write(time, frames), weakref.ref(optimizer)))
