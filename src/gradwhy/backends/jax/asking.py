"""One question while JAX works on it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import jax

from gradwhy.backends.jax import describe
from gradwhy.backends.jax.record import Frames, Pass, Recorder, Stretch, ValueRecord

if TYPE_CHECKING:
    from gradwhy.backends.jax.failures import Exit
    from gradwhy.backends.jax.unasked import Unasked


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
    def is_second(self) -> bool:
        """Whether the answer is a second derivative, which is often zero and rightly so."""
        return self.kind == "jax.hessian"

    @property
    def is_pulled(self) -> bool:
        """Whether the program itself says what to multiply the derivative with."""
        return self.kind == "jax.vjp"


class Asking:
    """What was asked, and what has been seen of it so far.

    `argnums` are the positions of the arguments asked about, `arrays` the leaves of these, `leaves` their records,
    `tracers` the records of what JAX put in their place, None where it put nothing. `left_out` are arrays that a module of a library held back, `unasked` those
    that the program looks for in the answer all the same; `aux` are the records of what came back beside the target, with
    their paths. `is_traced` says that the values are
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
        self.left: Exit | None = None
        self.left_out: list[tuple[int, str, Any, bool]] = []
        self.aux: list[tuple[str, ValueRecord]] = []
        self.unasked: tuple[Unasked, ...] = ()
        self.is_more_returned = False

    def let_go(self, paths: list[str]) -> None:
        """Keep no value of the program's: the question may wait for long, or for ever."""
        self.paths = paths
        self.args, self.arrays, self.left_out = (), [], []

    def values(self) -> list[Any]:
        """The leaves of what was passed in; of one that is gone, only what type of array it was."""
        return self.arrays or [value if (value := leaf.value) is not None else leaf.aval for leaf in self.leaves]

    def names_of(self, value: Any) -> list[str]:
        """The paths of the arguments, differentiated or not, at which a value was passed in."""
        names = describe.parameters(self.fun, len(self.args))
        return [
            names[n] + jax.tree_util.keystr(path)
            for n, argument in enumerate(self.args)
            for path, leaf in jax.tree_util.tree_flatten_with_path(argument)[0]
            if leaf is value
        ]

    @property
    def key(self) -> object:
        """The same for the same question, asked again from the same place."""
        return (self.manner.kind, self.frames)
