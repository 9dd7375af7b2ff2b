"""Programs run under the JAX backend alone, with a witness that keeps what it is told."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from gradwhy.backends.contract import Answer
from gradwhy.backends.jax import JaxBackend
from gradwhy.diagnose.paths import Path as FlowPath
from gradwhy.diagnose.paths import cheapest
from gradwhy.diagnose.recording import Recording
from gradwhy.flow import Asked, FlowGraph, Question, Status
from gradwhy.source import files

HEAD = "import jax\nimport jax.numpy as jnp\nimport numpy as np\n"


@dataclass(frozen=True, slots=True)
class Told:
    """One answer, with the question in words; the graph is drawn for the wrong ones."""

    answer: Answer
    question: Question
    graph: FlowGraph | None

    @property
    def statuses(self) -> dict[str, Status]:
        return {asked.source.name: asked.status for asked in self.question.asked}

    def asked(self, name: str) -> Asked:
        return next(a for a in self.question.asked if a.source.name == name)

    def path(self, name: str) -> FlowPath | None:
        assert self.graph is not None
        value = self.asked(name).value
        assert value is not None
        return cheapest(Recording(self.graph, self.question), frozenset({value})).get(value)

    def barriers(self, name: str) -> list[tuple[str, int]]:
        """The barrier and the line of every cut on the cheapest path, the one nearest to the source first."""
        path = self.path(name)
        assert path is not None, f"no path leads to {name}"
        return [(str(r.barrier), _line(r.first)) for r in path.regions]


def _line(passed: object) -> int:
    span = passed.edge.span or passed.op.places[0].span  # type: ignore[attr-defined]
    return span.line - HEAD.count("\n")  # type: ignore[no-any-return]


@dataclass
class Listening:
    """A witness that draws every wrong answer at once, and expects nothing of ours to fail."""

    told: list[Told] = field(default_factory=list)
    escapes: list[BaseException] = field(default_factory=list)
    failures: list[tuple[str, BaseException]] = field(default_factory=list)

    def answered(self, answer: Answer) -> None:
        is_wrong = any(status is not Status.OK for status in answer.statuses)
        self.told.append(Told(answer, *answer.build(is_wrong)))

    def escaped(self, problem: BaseException) -> None:
        self.escapes.append(problem)

    def failed(self, what: str, problem: BaseException) -> None:
        self.failures.append((what, problem))


@pytest.fixture
def listening() -> Iterator[Listening]:
    """The witness of an attached backend."""
    witness, backend = Listening(), JaxBackend()
    backend.attach(witness)
    yield witness
    backend.detach()
    assert not witness.failures


@pytest.fixture
def observe(listening: Listening, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], list[Told]]:
    """Run a program under observation, after lines that import JAX and NumPy, and give what was told of it.

    Lines are counted from the first after those. What the program raises is raised, once it has been told.
    """

    def run(text: str) -> list[Told]:
        file = tmp_path / f"program_{len(list(tmp_path.iterdir()))}.py"
        file.write_text(HEAD + text, encoding="utf-8")
        files.start_in(str(tmp_path))
        main = types.ModuleType("__main__")
        main.__file__ = str(file)
        monkeypatch.setitem(sys.modules, "__main__", main)
        exec(compile(file.read_bytes(), str(file), "exec"), main.__dict__)
        return listening.told

    return run
