"""What ran: one small record for each op that the program called, hung on the lifetime of the tensors it made."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from itertools import count
from types import FrameType
from typing import Any

import torch
from torch import Tensor
from torch.nn import Parameter

from gradwhy.backends.torch import ops
from gradwhy.backends.torch.arguments import ids_of_given, is_direct, tensors_in
from gradwhy.backends.torch.grad_mode import GradMode
from gradwhy.backends.torch.history import History
from gradwhy.backends.torch.trail import Call, Edge, Fixed, Frames, HostInput, Record, Tie
from gradwhy.backends.torch.writes import Writes
from gradwhy.flow import Unrecorded
from gradwhy.host.links import HostLinks
from gradwhy.source.positions import user_frames

MOST_FRAMES = 12
_MOST_FRAMES_OF_OP = 4
MOST_VALUES = 200_000
_is_grad_enabled = torch.is_grad_enabled
_peek_sequence: Callable[[], int] = torch.autograd._get_sequence_nr  # type: ignore[attr-defined]


class Recorder:
    """The records of one run."""

    def __init__(self) -> None:
        self.table: dict[int, Tie | Fixed] = {}
        self.clock = count(1)
        self.links: HostLinks[Record] = HostLinks()
        self.grad_mode = GradMode(self.clock)
        self.history = History(self.clock)
        self.writes = Writes(self)
        self.thread = threading.get_ident()
        self.is_quiet = 0
        self.has_gap = False
        self.hidden: list[Tensor] | None = None
        """The leaves read inside the op that is running, while one runs that is taken as a whole."""
        self._forget = self._died
        self.special: dict[Any, Callable[..., None]] = {
            **dict.fromkeys(ops.LEAVING, self._leave),
            **dict.fromkeys(ops.ENTERING, self._enter),
            **dict.fromkeys(ops.SWITCHING, self._switch),
            ops.SET_ITEM: self.writes.set_item,
            ops.SET_DATA: self.writes.set_data,
            ops.SET_GRAD_MODE: self._set_grad_mode,
        }

    def begin(self) -> None:
        """A stretch begins in which the program is watched. What ran between two of them was not seen."""
        if next(self.clock) == 1:
            return
        self.has_gap = True
        self.links = HostLinks()
        self.history.forget()
        self.grad_mode.begin()
        for key, entry in list(self.table.items()):
            # Of these no death was seen; only a parameter is likely to be what it was.
            if isinstance(entry, Fixed) and not entry.record.is_parameter:
                del self.table[key]

    # What the mode reports

    def note(
        self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None, result: Any, frame: FrameType
    ) -> None:
        """`func` was called and gave `result`; `frame` called it."""
        if self.is_quiet:
            if self.hidden is not None:
                self._read_hidden(args, kwargs)
            return
        special = self.special.get(func)
        if special is not None:
            special(func, args, kwargs or {}, result, frame)
            return
        if type(result) is Tensor:
            self.op(func, args, kwargs, (result,), frame)
        elif outputs := tensors_in(result):
            self.op(func, args, kwargs, outputs, frame)

    def op(
        self,
        func: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any] | None,
        outputs: tuple[Tensor, ...],
        frame: FrameType,
    ) -> None:
        """An op made `outputs`, or changed some of its inputs."""
        for output in outputs:
            # What has a record may be one of the inputs; it may as well have the id of a leaf that is gone.
            if id(output) in self.table:
                self._op_on_known(func, args, kwargs, outputs, frame)
                return
        call = self.call(func, args, kwargs, frame)
        index = 0
        for output in outputs:
            self.born(output, call, index)
            index += 1

    def _op_on_known(
        self,
        func: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any] | None,
        outputs: tuple[Tensor, ...],
        frame: FrameType,
    ) -> None:
        given = ids_of_given(args, kwargs)
        is_in_place = ops.is_in_place(func, kwargs)
        # Such as `contiguous()`, which may give back what it was given.
        made = [o for o in outputs if is_in_place or id(o) not in given]
        if not made:
            return
        call = self.call(func, args, kwargs, frame)
        for index, output in enumerate(made):
            if id(output) in given:
                self.writes.write(output, call)
            else:
                self.born(output, call, index)

    def call(self, func: Any, args: Iterable[Any], kwargs: dict[str, Any] | None, frame: FrameType | None) -> Call:
        """The record of a call, whose outputs are still to come."""
        frames = user_frames(frame, _MOST_FRAMES_OF_OP)
        host: list[HostInput] = []
        inputs = self._inputs(args, kwargs, frames, host)
        call = Call(func, inputs, next(self.clock), frames)
        call.is_direct = is_direct(frame, frames)
        call.sequence = _peek_sequence()
        pause = self.grad_mode.current
        if (pause is None) is not _is_grad_enabled():
            pause = self.grad_mode.reconcile(frames)
        call.pause = pause
        if host:
            call.host = tuple(host)
        return call

    def born(self, tensor: Tensor, call: Call, index: int = 0) -> Record:
        """A tensor that `call` made."""
        if type(tensor) is not Tensor and type(tensor) is not Parameter:
            # The program's own class would be asked for its attributes.
            with torch._C.DisableTorchFunctionSubclass():
                return self._born(tensor, call, index)
        return self._born(tensor, call, index)

    def _born(self, tensor: Tensor, call: Call, index: int) -> Record:
        requires_grad = tensor.requires_grad
        record = Record(call, tensor.dtype, requires_grad, index)
        is_leaf = False
        if requires_grad:
            call.is_recorded = True
            if not any(edge[2] for edge in call.inputs) and tensor.is_leaf:
                is_leaf = True
                call.is_recorded = False
                record.watched = (call.time, call.frames)
        if call.func in ops.ALIASING and call.inputs:
            is_detached = call.func in ops.DETACHING
            if is_detached or tensor._is_view():
                self.writes.share(record, call.inputs[0][1], is_detached=is_detached)
        self.keep(tensor, record, is_leaf=is_leaf)
        return record

    def keep(self, tensor: Tensor, record: Record, *, is_leaf: bool) -> None:
        """Hang `record` on `tensor`, in the place of what hung there."""
        key = id(tensor)
        before = self.table.get(key)
        if before is not None:
            before.record.is_alive = False
        if is_leaf or type(tensor) is not Tensor:
            record.is_parameter = isinstance(tensor, Parameter)
            self.table[key] = Fixed(record)
        else:
            tie = Tie(tensor, self._forget)
            tie.key = key
            tie.record = record
            self.table[key] = tie
        self.history.add(record)

    def release(self, tensor: Tensor) -> None:
        """Take the weak reference off a tensor that must not have one; its record stays."""
        entry = self.table.get(id(tensor))
        if isinstance(entry, Tie):
            self.table[id(tensor)] = Fixed(entry.record)

    def of(self, tensor: Tensor) -> Record:
        """The record of a tensor; one that was not seen before begins here."""
        entry = self.table.get(id(tensor))
        return self._adopt(tensor) if entry is None else entry.record

    def known(self, tensor: Tensor) -> Record | None:
        """The record of a tensor, if it has one."""
        entry = self.table.get(id(tensor))
        return None if entry is None else entry.record

    def in_order(self, tensors: Iterable[Tensor]) -> tuple[Tensor, ...]:
        """The tensors, each once, in the order in which they were made."""
        distinct = {id(tensor): tensor for tensor in tensors}
        return tuple(sorted(distinct.values(), key=lambda tensor: _made_at(self.of(tensor))))

    def question_answered(self) -> None:
        """Bound what is kept: what came before the last two questions is condensed."""
        self.links.question_answered()
        self.history.advance()
        if len(self.table) > MOST_VALUES:
            self._drop_fixed()

    # Leaving and coming back

    def _leave(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any, frame: FrameType) -> None:
        call = self.call(func, args, kwargs, frame)
        if call.inputs and result is not None and type(result) is not bool:
            self.links.left(Record(call, None), result, call.frames[0] if call.frames else None, call.time)

    def _enter(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any, frame: FrameType) -> None:
        if isinstance(result, Tensor) and id(result) not in ids_of_given(args, kwargs):
            self.entered(func, args, kwargs, result, frame)

    def entered(
        self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Tensor, frame: FrameType | None
    ) -> None:
        """`result` was made from host values, or from tensors by copying."""
        call = self.call(func, args, kwargs, frame)
        if not call.inputs and not call.host and args:
            found = self._host_input(0, args[0], call.frames)
            call.host = (found,) if found else ()
        self.born(result, call)

    def _host_input(self, slot: int | str, given: Any, frames: Frames) -> HostInput | None:
        frame = frames[0] if frames else None
        origin = self.links.origin(given, frame)
        if origin is None:
            return None
        if origin[1]:
            return HostInput(slot, (origin[0],), is_observed=True)
        return HostInput(slot, tuple(exit.key for exit in self.links.candidates(frame)), is_observed=False)

    # Switches

    def _switch(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any, frame: FrameType) -> None:
        tensor = args[0]
        requires_grad = tensor.requires_grad
        record = self.of(tensor)
        if record.requires_grad is requires_grad or not tensor.is_leaf:
            return
        self.switched(tensor, record, user_frames(frame, MOST_FRAMES))

    def switched(self, tensor: Tensor, record: Record, frames: Frames) -> None:
        """A leaf began to ask for a gradient, or ceased to."""
        record.requires_grad = tensor.requires_grad
        record.was_watched = record.was_watched or record.watched is not None
        record.watched = (next(self.clock), frames) if record.requires_grad else None
        record.switched = () if record.requires_grad else frames
        if record.requires_grad:
            self.release(tensor)

    def _set_grad_mode(
        self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any, frame: FrameType
    ) -> None:
        self.grad_mode.was_set(frame)

    # Inputs

    def _inputs(
        self, args: Iterable[Any], kwargs: dict[str, Any] | None, frames: Frames, host: list[HostInput]
    ) -> tuple[Edge, ...]:
        found: list[Edge] = []
        slot: int | str = 0
        for slot, given in enumerate(args):
            if isinstance(given, Tensor):
                self._read(slot, given, frames, found)
            else:
                kind = type(given)
                if kind is tuple or kind is list:
                    self._read_parts(slot, given, frames, found)
                elif kind is float and self.links.has_exits:
                    self._read_number(slot, given, frames, host)
        if kwargs:
            for slot, given in kwargs.items():
                if isinstance(given, Tensor):
                    self._read(slot, given, frames, found)
                elif type(given) in (tuple, list):
                    self._read_parts(slot, given, frames, found)
        return tuple(found)

    def _read_parts(self, slot: int | str, given: Iterable[Any], frames: Frames, found: list[Edge]) -> None:
        for part in given:
            if isinstance(part, Tensor):
                self._read(slot, part, frames, found)
            elif type(part) in (tuple, list):
                self._read_parts(slot, part, frames, found)

    def _read_number(self, slot: int | str, given: float, frames: Frames, host: list[HostInput]) -> None:
        found = self._host_input(slot, given, frames)
        if found is not None:
            host.append(found)

    def _read(self, slot: int | str, tensor: Tensor, frames: Frames, found: list[Edge]) -> None:
        entry = self.table.get(id(tensor))
        record = self._adopt(tensor) if entry is None else entry.record
        record.used = frames
        found.append((slot, record, record.requires_grad, False))
        write = record.memory.write if record.memory is not None else None
        if write is not None and write is not record and _made_at(write) > _made_at(record):
            found.append((slot, write, write.requires_grad, write.family is not record.family))

    def _read_hidden(self, args: Iterable[Any], kwargs: dict[str, Any] | None) -> None:
        """Note the leaves that are read inside an op that is taken as a whole, so that none of them counts as unused."""
        assert self.hidden is not None
        for given in args if not kwargs else (*args, *kwargs.values()):
            if isinstance(given, Tensor) and given.requires_grad and given.is_leaf:
                self.hidden.append(given)

    def _adopt(self, tensor: Tensor) -> Record:
        """The record of a tensor whose birth was not seen.

        One without history that asks for nothing is a beginning, whatever function we do not see made it: a legacy
        constructor, a file, another process. After a stretch that was not watched it may be anything.
        """
        requires_grad = tensor.requires_grad
        record = Record(None, tensor.dtype, requires_grad)
        is_leaf = True
        if requires_grad:
            is_leaf = tensor.is_leaf
            if is_leaf:
                record.watched = (0, ())
            else:
                record.unrecorded = _reason(tensor)
        elif self.has_gap:
            record.unrecorded = Unrecorded.NOT_SEEN
        self.keep(tensor, record, is_leaf=requires_grad and is_leaf)
        return record

    # Lifetimes

    def _died(self, tie: Tie) -> None:
        if self.table.get(tie.key) is tie:
            del self.table[tie.key]
        tie.record.is_alive = False

    def _drop_fixed(self) -> None:
        """Forget the older half of the tensors whose death we cannot see."""
        fixed = [key for key, entry in self.table.items() if isinstance(entry, Fixed)]
        for key in fixed[: len(fixed) // 2]:
            self.table.pop(key).record.is_alive = False


def _made_at(record: Record) -> int:
    return record.call.time if record.call is not None else 0


def _reason(tensor: Tensor) -> Unrecorded:
    """Why the history of a tensor with a `grad_fn` is not known."""
    name = type(tensor.grad_fn).__name__
    return Unrecorded.COMPILED if name.startswith("CompiledFunction") else Unrecorded.NOT_SEEN
