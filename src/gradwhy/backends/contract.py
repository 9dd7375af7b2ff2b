"""What a backend gives, and what it may ask of the session that watches."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Protocol

from gradwhy.flow import FlowGraph, Numbers, Question, Status, Text


@dataclass(frozen=True, slots=True)
class Answer:
    """One question that the framework has answered, told as cheaply as it can be.

    `key` is equal for the same question asked again from the same place in the code. `build` does the dear work, names and
    spans, and with True the slice of the flow graph, too; it must be called, if at all, before the backend's hook returns.
    """

    kind: str
    framework: str
    key: Hashable
    statuses: tuple[Status, ...]
    build: Callable[[bool], tuple[Question, FlowGraph | None]]
    numbers: Callable[[], tuple[Numbers | None, tuple[Numbers | None, ...]]] | None = None
    """The target's numbers and those of each gradient, None where there are none to be had; to be called as `build` is."""


class Witness(Protocol):
    """The session, as a backend sees it."""

    def answered(self, answer: Answer) -> None:
        """A question was answered."""

    def escaped(self, problem: BaseException) -> None:
        """An exception left the framework's question or reached the program's top."""

    def failed(self, what: str, problem: BaseException) -> None:
        """Our own code failed in the hook named `what`, and the backend has been detached."""

    def declined(self, why: Text) -> None:
        """Something that the program uses is not observed, for this reason."""


class Backend(Protocol):
    """All that we know about one framework."""

    framework: str
    """The name under which it is imported: `tensorflow`, `torch`, `jax`."""

    oldest: tuple[int, int]
    """The oldest release, by its first two numbers, that is observed; an older one is declined."""

    def version(self) -> str:
        """The version of the framework that the program imported."""

    def attach(self, witness: Witness) -> None:
        """Begin to observe. The framework has just been imported."""

    def detach(self) -> None:
        """Undo every patch. Calling it twice is harmless."""

    def settle(self, problem: BaseException | None) -> None:
        """The program has ended, with `problem` or without: answer what only the end shows."""

    def why(self, target: object, source: object) -> bool:
        """Answer the user's own question about these two, if they are this framework's values; whether they are."""
