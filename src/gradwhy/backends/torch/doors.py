"""The doors that the mode does not see: constructors, custom functions, contexts, compiled callables, forks."""

from __future__ import annotations

import os
import sys
import threading
import weakref
from types import FrameType
from typing import Any

import torch
from torch import Tensor
from torch.nn import Parameter

from gradwhy.backends.patches import Hooks
from gradwhy.backends.torch import gradient_functions, ops
from gradwhy.backends.torch.grad_mode import Pause
from gradwhy.backends.torch.record import Recorder
from gradwhy.backends.torch.trail import Frames
from gradwhy.backends.torch.watch import Watch

_COMPILED = "CompiledFunction"
_watches: weakref.WeakSet[Watch] = weakref.WeakSet()


class Doors:
    """The patches around what the mode does not report."""

    def __init__(self, recorder: Recorder, watch: Watch) -> None:
        self._recorder = recorder
        self._watch = watch
        self._has_compiled = False
        _watches.add(watch)

    def open(self, hooks: Hooks) -> None:
        """Put every patch in place."""
        hooks.wrap(Parameter, "__new__", "torch.Parameter", after=self._parameter)
        hooks.wrap(
            Parameter,
            "__deepcopy__",
            "torch.Parameter.deepcopy",
            before=self._before_copy,
            after=self._after_copy,
            raised=self._copy_raised,
        )
        hooks.wrap(torch, "from_numpy", "torch.from_numpy", after=self._from_numpy, stands_in=True)
        hooks.wrap(torch.utils, "swap_tensors", "torch.swap_tensors", before=self._before_swap)
        function = torch.autograd.Function
        hooks.wrap(
            function,
            "apply",
            "torch.Function.apply",
            before=self._before_apply,
            after=self._after_apply,
            raised=self._apply_raised,
        )
        context = torch.autograd.grad_mode.inference_mode
        hooks.wrap(context, "__enter__", "torch.inference_mode.enter", after=self._entered_inference)
        hooks.wrap(context, "__exit__", "torch.inference_mode.exit", after=self._left_inference)

    @property
    def _is_elsewhere(self) -> bool:
        return threading.get_ident() != self._recorder.thread or bool(self._recorder.is_quiet)

    # Constructors

    def _parameter(self, token: Any, result: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """`nn.Parameter(data)`: another object, that shares its memory with `data` and not its history."""
        recorder = self._recorder
        # A tensor that was just born has no past, whatever once had its id.
        recorder.table.pop(id(result), None)
        if self._is_elsewhere or not isinstance(result, Tensor):
            return
        call = recorder.call(ops.NEW_PARAMETER, args[1:], kwargs, _caller())
        record = recorder.born(result, call)
        call.is_recorded = False
        record.is_parameter = True
        if record.requires_grad and record.watched is None:
            record.watched = (call.time, call.frames)

    def _before_copy(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """A copy of a parameter is one op, not the three of which it is made; one that is made already is only found again."""
        memo = args[1] if len(args) > 1 else {}
        is_ours = not self._is_elsewhere and id(args[0]) not in memo
        self._recorder.is_quiet += is_ours
        return is_ours

    def _after_copy(self, is_ours: bool, result: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if not is_ours:
            return
        recorder = self._recorder
        recorder.is_quiet -= 1
        recorder.table.pop(id(result), None)
        call = recorder.call(ops.DEEP_COPY, args[:1], None, _caller())
        record = recorder.born(result, call)
        call.is_recorded = False
        record.is_parameter = True
        if record.requires_grad and record.watched is None:
            record.watched = (call.time, call.frames)

    def _copy_raised(
        self, is_ours: bool, problem: BaseException, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        self._recorder.is_quiet -= bool(is_ours)

    def _from_numpy(self, token: Any, result: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if not self._is_elsewhere:
            self._recorder.entered(ops.FROM_NUMPY, args, kwargs, result, _caller())

    def _before_swap(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """`swap_tensors` refuses a tensor with a weak reference; ours go."""
        for tensor in (*args, *kwargs.values()):
            if isinstance(tensor, Tensor):
                self._recorder.release(tensor)

    # Custom functions

    def _before_apply(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """`Function.apply` runs its forward as if gradients were off; it is one op."""
        is_ours = not self._is_elsewhere
        if is_ours:
            self._recorder.is_quiet += 1
            self._recorder.hidden = []
        return is_ours

    def _after_apply(self, is_ours: bool, result: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if not is_ours:
            return
        recorder = self._recorder
        hidden = self._end_apply()
        outputs = result if isinstance(result, (tuple, list)) else (result,)
        given = {id(part) for part in args}
        inside = list({id(leaf): leaf for leaf in hidden if id(leaf) not in given}.values())
        call = recorder.call(args[0].__name__, args[1:], {ops.HIDDEN: inside} if inside else None, _caller())
        if call.func.startswith(_COMPILED):
            call.frames = _outside_compiled(call.frames)
        call.backward = gradient_functions.code_of(args[0])
        for index, output in enumerate(outputs):
            if isinstance(output, Tensor) and id(output) not in given:
                recorder.born(output, call, index)
        if call.func == ops.CHECKPOINT and not call.is_recorded:
            # Without an input that asks for a gradient a reentrant checkpoint keeps nothing.
            call.pause = Pause("torch.utils.checkpoint", call.time, call.frames)

    def _end_apply(self) -> list[Tensor]:
        recorder = self._recorder
        recorder.is_quiet -= 1
        hidden, recorder.hidden = recorder.hidden or [], None
        return hidden

    def _apply_raised(
        self, is_ours: bool, problem: BaseException, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        if is_ours:
            self._end_apply()

    # Contexts

    def _entered_inference(self, token: Any, result: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if not self._is_elsewhere:
            self._recorder.grad_mode.entered("torch.inference_mode()", _caller())

    def _left_inference(self, token: Any, result: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if not self._is_elsewhere:
            self._recorder.grad_mode.exited(_caller())

    # Compiled callables

    def open_always(self, hooks: Hooks) -> None:
        """Put those in place that stand between the stretches, too: what is compiled then may be called in the next one."""
        hooks.wrap(torch, "compile", "torch.compile", before=self._before_compile)
        self._always = hooks

    def _before_compile(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """See to it that compiled callables run without the mode: Dynamo would trace into it.

        `torch.compile` imports `torch._dynamo` itself. Its contexts have a list of what to do around each call (2.13).
        """
        from torch._dynamo import eval_frame

        if not self._has_compiled:
            self._has_compiled = True
            context = eval_frame._TorchDynamoContext
            self._always.wrap(context, "__init__", "torch.compiled", after=self._compiled)

    def _compiled(self, token: Any, result: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        args[0].enter_exit_hooks.insert(0, self._watch.around_compiled)


def _outside_compiled(frames: Frames) -> Frames:
    """The frames around a compiled callable: what Dynamo made of the user's function has no lines of its own (2.13)."""
    inside = 1
    while inside < len(frames) and frames[inside - 1][0].co_name.startswith("torch_dynamo_resume_in"):
        inside += 1
    return frames[inside:] or frames


def _caller() -> FrameType | None:
    """The frame that called the patched function: the first one that is not of the patches."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and frame.f_code.co_filename in _OURS:
        frame = frame.f_back
    return frame


def _in_child() -> None:
    """A forked child, such as a worker that loads data, is another program's business."""
    for watch in list(_watches):
        watch.end()


_OURS = frozenset({__file__, sys.modules[Hooks.__module__].__file__})

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
