"""One question while JAX works on it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gradwhy.backends.jax.record import Frames, Pass, Recorder, Stretch, ValueRecord

if TYPE_CHECKING:
    from gradwhy.backends.jax.failures import HostExit


@dataclass(frozen=True, slots=True)
class Manner:
    """How a question is asked: by which function, of which arguments, and whether the answer has more to it."""

    kind: str
    argnums: Any = 0
    has_aux: bool = False

    @property
    def is_forward(self) -> bool:
        return self.kind == "jax.jacfwd"

    @property
    def is_pulled(self) -> bool:
        """Whether the program itself says what to multiply the derivative with."""
        return self.kind == "jax.vjp"


class Asking:
    """What was asked, and what has been seen of it so far.

    `argnums` are the positions of the arguments asked about, `arrays` the leaves of these, `leaves` their records,
    `tracers` the records of what JAX put in their place, None where it put nothing. `is_traced` says that the values are
    not there yet: the program is being compiled. `paths` are the names of the leaves, once the arguments were let go of.
    """

    def __init__(
        self,
        manner: Manner,
        fun: Callable[..., Any],
        *,
        args: tuple[Any, ...],
        argnums: tuple[int, ...],
        frames: Frames,
        recorder: Recorder,
    ) -> None:
        self.manner = manner
        self.fun = fun
        self.args = args
        self.argnums = argnums
        self.frames = frames
        self.recorder = recorder
        self.paths: list[str] | None = None
        self.has_left = False
        self.is_traced = False
        self.arrays: list[Any] = []
        self.leaves: list[ValueRecord] = []
        self.tracers: list[ValueRecord | None] = []
        self.tag: Any = None
        self.stretch: Stretch | None = None
        self.targets: list[ValueRecord] = []
        self.seeds: list[ValueRecord] = []
        self.passing = Pass()
        self.host_exit: HostExit | None = None

    def let_go(self, paths: list[str]) -> None:
        """Keep no value of the program's: the question may wait for long, or for ever."""
        self.paths = paths
        self.args, self.arrays = (), []

    def values(self) -> list[Any]:
        """The leaves of what was passed in; of one that is gone, only what type of array it was."""
        return self.arrays or [value if (value := leaf.value) is not None else leaf.aval for leaf in self.leaves]

    @property
    def key(self) -> object:
        """The same for the same question, asked again from the same place."""
        return (self.manner.kind, self.frames)
