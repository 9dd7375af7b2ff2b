"""What we know about PyTorch."""

from __future__ import annotations

from gradwhy.backends.contract import Backend, Witness
from gradwhy.backends.patches import Hooks
from gradwhy.backends.torch import afterwards, versions
from gradwhy.backends.torch.doors import Doors
from gradwhy.backends.torch.optimizers import Optimizers
from gradwhy.backends.torch.questions import Questions
from gradwhy.backends.torch.record import Recorder
from gradwhy.backends.torch.refusals import Refusals
from gradwhy.backends.torch.watch import Watch

__all__ = ["TorchBackend", "backend"]


class TorchBackend:
    """Observes what a program calls in PyTorch, and what gradients it asks for."""

    framework = "torch"
    oldest = versions.OLDEST

    def __init__(self) -> None:
        self._hooks: Hooks | None = None
        self._watch: Watch | None = None
        self._questions: Questions | None = None

    def version(self) -> str:
        return versions.version()

    def attach(self, witness: Witness) -> None:
        hooks = self._hooks = Hooks(witness)
        try:
            recorder = Recorder()
            watch = self._watch = Watch(hooks, recorder)
            questions = self._questions = Questions(recorder, watch, witness)
            doors, optimizers = Doors(recorder, watch), Optimizers(recorder, watch, questions)
            refusals = Refusals(recorder, watch, questions, witness)
            watch.refused = refusals.op
            for part in (doors, questions, optimizers, refusals):
                watch.on_begin(part.open)
            doors.open_always(hooks)
            optimizers.open_always(hooks)
            watch.begin()
        except BaseException as problem:
            hooks.fail("torch.attach", problem)

    def detach(self) -> None:
        if self._hooks is not None:
            self._hooks.take_off()
        if self._watch is not None:
            self._watch.end()

    def settle(self, problem: BaseException | None) -> None:
        """PyTorch answers or refuses a question where it is asked; but nobody may have been watching by then."""
        hooks, watch, questions = self._hooks, self._watch, self._questions
        if problem is None or hooks is None or watch is None or questions is None or not hooks.are_on or watch.is_on:
            return
        afterwards.answer(problem, questions.recorder, questions, questions.witness)

    def why(self, target: object, source: object) -> bool:
        """The user's own question is not answered here yet: see the limitations."""
        return False


def backend() -> Backend:
    """The backend for PyTorch."""
    return TorchBackend()
