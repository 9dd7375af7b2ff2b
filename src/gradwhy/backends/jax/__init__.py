"""What we know about JAX."""

from __future__ import annotations

from gradwhy.backends.contract import Backend, Witness
from gradwhy.backends.jax import versions
from gradwhy.backends.jax.questions import Questions
from gradwhy.backends.jax.record import Recorder
from gradwhy.backends.patches import Hooks

__all__ = ["JaxBackend", "backend"]


class JaxBackend:
    """Observes what a program differentiates with JAX, and what the differentiated functions run."""

    framework = "jax"
    oldest = versions.OLDEST

    def __init__(self) -> None:
        self._hooks: Hooks | None = None

    def version(self) -> str:
        return versions.version()

    def attach(self, witness: Witness) -> None:
        hooks = self._hooks = Hooks(witness)
        recorder = Recorder()
        recorder.attach(hooks)
        Questions(recorder, hooks, witness).attach()

    def detach(self) -> None:
        if self._hooks is not None:
            self._hooks.take_off()

    def settle(self, problem: BaseException | None) -> None:
        """Nothing is left to answer: JAX answers or refuses a question where it is asked."""

    def why(self, target: object, source: object) -> bool:
        """The user's own question is not answered here yet: see the limitations."""
        return False


def backend() -> Backend:
    """The backend for JAX."""
    return JaxBackend()
