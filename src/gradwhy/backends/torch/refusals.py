"""What PyTorch refuses before a gradient is asked for: writes into leaves, optimizers without a leaf."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterable
from types import FrameType, TracebackType
from typing import Any

import torch
from torch import Tensor
from torch.nn.parallel import DistributedDataParallel
from torch.optim.optimizer import Optimizer

from gradwhy.backends.contract import Witness
from gradwhy.backends.patches import Hooks
from gradwhy.backends.torch import failures
from gradwhy.backends.torch.asking import CONSTRUCTION, WRITE, Asking
from gradwhy.backends.torch.modules import hidden, live_modules, registered
from gradwhy.backends.torch.questions import Questions
from gradwhy.backends.torch.record import MOST_FRAMES, Recorder
from gradwhy.backends.torch.watch import Watch
from gradwhy.flow import Status
from gradwhy.source.positions import user_frames

_OF_OPS = frozenset({"leaf-in-place", "integer"})


class Refusals:
    """Answers the exceptions that come where no gradient was asked for yet."""

    def __init__(self, recorder: Recorder, watch: Watch, questions: Questions, witness: Witness) -> None:
        self._recorder = recorder
        self._watch = watch
        self._questions = questions
        self._witness = witness

    def open(self, hooks: Hooks) -> None:
        """Put the hooks in place that stand while the program is watched."""
        hooks.wrap(Optimizer, "__init__", "torch.optimizer.init", raised=self._construction_raised)
        hooks.wrap(DistributedDataParallel, "forward", "torch.ddp.forward", raised=self._parallel_raised)

    @property
    def _is_elsewhere(self) -> bool:
        is_elsewhere = threading.get_ident() != self._recorder.thread or not self._watch.is_looking
        return is_elsewhere or bool(self._recorder.is_quiet)

    # Ops

    def op(self, func: Any, args: tuple[Any, ...], problem: BaseException, frame: FrameType) -> None:
        """A call raised: one that wrote into a leaf, or wanted a gradient for integers, is explained."""
        if self._is_elsewhere or failures.word_for(problem) not in _OF_OPS:
            return
        with torch._C.DisableTorchFunction():
            sources = [_leaf_of(given) for given in args[:1] if isinstance(given, Tensor)]
        if sources:
            self._answer(WRITE, sources, problem, frame, target="")

    # Optimizers

    def _construction_raised(
        self, token: Any, problem: BaseException, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        word = failures.word_for(problem)
        if self._is_elsewhere or word not in ("not-a-leaf", "nothing-to-train"):
            return
        with torch._C.DisableTorchFunction():
            if word == "not-a-leaf":
                sources = _results_in(args[1:], problem.__traceback__)
            else:
                empty = [module for module in live_modules() if next(registered(module), None) is None]
                sources = list[Tensor](hidden(empty, even_alone=True))
        if sources:
            self._answer(CONSTRUCTION, sources, problem, sys._getframe(2), target=type(args[0]).__name__)

    # Several processes

    def _parallel_raised(
        self, token: Any, problem: BaseException, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        """What this complains of the step before has asked about, and was told."""
        if not self._is_elsewhere and "Expected to have finished reduction" in str(problem):
            self._witness.escaped(problem)

    def _answer(
        self, kind: str, sources: Iterable[Tensor], problem: BaseException, frame: FrameType, *, target: str
    ) -> None:
        frames = user_frames(frame, MOST_FRAMES)
        pairs = tuple((source, Status.ERROR) for source in sources)
        unheld = frozenset(id(source) for source, _ in pairs if source.is_leaf and kind == CONSTRUCTION)
        time = next(self._recorder.clock)
        asking = Asking(kind, time, frames, frame, (), pairs, problem=problem, unheld=unheld, target=target)
        self._questions.answer(asking, about="refused")
        self._witness.escaped(problem)


def _leaf_of(tensor: Tensor) -> Tensor:
    """The leaf whose memory a tensor shows."""
    base = tensor._base
    return tensor if base is None or tensor.is_leaf else base


def _results_in(given: Iterable[Any], place: TracebackType | None) -> list[Tensor]:
    """The tensors among an optimizer's arguments that are no leaves; of an iterator that is used up, the one complained of."""
    found: dict[int, Tensor] = {}
    todo = list(given)
    while todo:
        part = todo.pop(0)
        if isinstance(part, Tensor):
            if not part.is_leaf and not part.retains_grad:
                found[id(part)] = part
        elif isinstance(part, (list, tuple)):
            todo[:0] = part
        elif isinstance(part, dict):
            todo[:0] = part.values()
    while not found and place is not None:
        last = place.tb_frame.f_locals.get("param")
        if place.tb_next is None and isinstance(last, Tensor):
            found[id(last)] = last
        place = place.tb_next
    return list(found.values())
