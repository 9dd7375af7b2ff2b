"""One question while JAX works on it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from gradwhy.backends.jax.record import Frames, Pass, Recorder, Stretch, ValueRecord

if TYPE_CHECKING:
    from gradwhy.backends.jax.failures import HostExit


class Asking:
    """What was asked, and what has been seen of it so far.

    `arrays` are the leaves of what was passed in, `leaves` their records, `tracers` the records of what JAX put in their
    place, None where it put nothing. `is_traced` says that the values are not there yet: the program is being compiled.
    """

    def __init__(
        self,
        kind: str,
        fun: Callable[..., Any],
        args: tuple[Any, ...],
        argnums: tuple[int, ...],
        frames: Frames,
        has_aux: bool,
        key: object,
        recorder: Recorder,
    ) -> None:
        self.recorder = recorder
        self.kind = kind
        self.fun = fun
        self.args = args
        self.argnums = argnums
        self.frames = frames
        self.has_aux = has_aux
        self.key = key
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
