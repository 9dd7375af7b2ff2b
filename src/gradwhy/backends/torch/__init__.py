"""What we know about PyTorch."""

from __future__ import annotations

from gradwhy.backends.contract import Backend, Witness
from gradwhy.backends.patches import Hooks
from gradwhy.backends.torch import ops, versions
from gradwhy.backends.torch.doors import Doors
from gradwhy.backends.torch.mode import ModeSwitch, Observing
from gradwhy.backends.torch.questions import Questions
from gradwhy.backends.torch.record import Recorder

__all__ = ["TorchBackend", "backend"]


class TorchBackend:
    """Observes what a program calls in PyTorch, and what gradients it asks for."""

    framework = "torch"

    def __init__(self) -> None:
        self._hooks: Hooks | None = None

    def version(self) -> str:
        return versions.version()

    def attach(self, witness: Witness) -> None:
        hooks = self._hooks = Hooks(witness)
        recorder = Recorder()
        try:
            switch = ModeSwitch(hooks, Observing(hooks, ops.SILENT, recorder.note))
            Doors(hooks, recorder, switch).open()
            Questions(hooks, recorder, switch, witness).open()
            switch.enter()
        except BaseException as problem:
            hooks.fail("torch.attach", problem)

    def detach(self) -> None:
        if self._hooks is not None:
            self._hooks.take_off()

    def settle(self, problem: BaseException | None) -> None:
        """Nothing is left to answer: PyTorch answers or refuses a question where it is asked."""


def backend() -> Backend:
    """The backend for PyTorch."""
    return TorchBackend()
