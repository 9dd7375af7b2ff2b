"""One question in the making: what was asked of which values, and what came back."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import FrameType

from torch import Tensor

from gradwhy.backends.torch.look import Look
from gradwhy.backends.torch.trail import Frames, Record, Tie
from gradwhy.flow import Status

BACKWARD = "backward"
GRAD = "autograd.grad"
READ = ".grad"
STEP = "optimizer.step"
CONSTRUCTION = "torch.optim"
WRITE = "in-place write"


@dataclass(frozen=True, slots=True)
class Pass:
    """One backward pass: from which targets, when, where, and what a full look at it saw.

    `ties` lead to the tensors themselves while they live.
    """

    time: int
    targets: tuple[Record, ...]
    ties: tuple[Tie | None, ...]
    frames: Frames
    look: Look | None = None

    def tensors(self) -> tuple[Tensor | None, ...]:
        """The targets that are still alive."""
        return tuple(tie() if tie is not None else None for tie in self.ties)


@dataclass(frozen=True, slots=True)
class Asking:
    """What a question asks for: `passes` ran, or were to run, from its targets.

    `frame` is the live frame that asks, for a look at the user's names.
    """

    kind: str
    time: int
    frames: Frames
    frame: FrameType | None
    passes: tuple[Pass, ...]
    sources: tuple[tuple[Tensor, Status], ...]
    held: frozenset[int] = field(default_factory=frozenset)
    """The ids of the parameters that an optimizer holds."""
    problem: BaseException | None = None
    earlier: Pass | None = None
    unheld: frozenset[int] = field(default_factory=frozenset)
    """The ids of the parameters that are kept where no module looks for its own."""
    target: str = ""
    """What is asked, where no pass has a target."""

    @property
    def look(self) -> Look | None:
        """The full look at the last pass, if there was one."""
        return self.passes[-1].look if self.passes else None
