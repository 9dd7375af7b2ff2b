"""An exception of autograd's that ends the program after the watching has ended: what can still be told."""

from __future__ import annotations

import gc
from types import CodeType

import torch
from torch import Tensor
from torch.optim.optimizer import Optimizer

from gradwhy.backends.contract import Witness
from gradwhy.backends.torch import failures
from gradwhy.backends.torch.asking import BACKWARD, Asking, Pass
from gradwhy.backends.torch.questions import Questions
from gradwhy.backends.torch.record import MOST_FRAMES, Recorder
from gradwhy.backends.torch.trail import Frames, Record
from gradwhy.flow import Status, Unrecorded
from gradwhy.source.positions import is_user_code

_ANSWERED = frozenset({failures.NOT_RECORDED, failures.CHANGED, failures.USED_UP, failures.ONCE})


def answer(problem: BaseException, recorder: Recorder, questions: Questions, witness: Witness) -> None:
    """Answer the backward pass that ended the program and was not watched, if it was one.

    Nothing is known of how its target came about: what holds now, a parameter that is frozen, a switch that is off, can be told.
    """
    frames = _frames_of_backward(problem)
    sources = _held() if frames and failures.word_for(problem) in _ANSWERED else []
    if not sources:
        return
    with torch._C.DisableTorchFunction():
        for source in sources:
            record = recorder.known(source)
            if record is not None and record.requires_grad is not source.requires_grad:
                recorder.switched(source, record, ())
    target = Record(None, torch.float32)
    target.unrecorded = Unrecorded.NOT_SEEN
    time = next(recorder.clock)
    passed = Pass(time, (target,), (None,), frames)
    pairs = tuple((source, Status.ERROR) for source in sources)
    questions.answer(Asking(BACKWARD, time, frames, None, (passed,), pairs, problem=problem), about="failed")
    witness.escaped(problem)


def _frames_of_backward(problem: BaseException) -> Frames:
    """The user's frames, innermost first, if the exception came out of a backward pass."""
    found: list[tuple[CodeType, int]] = []
    is_backward = False
    place = problem.__traceback__
    while place is not None:
        code = place.tb_frame.f_code
        is_backward = is_backward or code is torch.autograd.backward.__code__
        if is_user_code(code):
            found.append((code, place.tb_lasti))
        place = place.tb_next
    return tuple(found[::-1][:MOST_FRAMES]) if is_backward else ()


def _held() -> list[Tensor]:
    """What the program's optimizers hold."""
    optimizers = [found for found in gc.get_objects() if issubclass(type(found), Optimizer)]
    return [p for optimizer in optimizers for group in optimizer.param_groups for p in group["params"]]
