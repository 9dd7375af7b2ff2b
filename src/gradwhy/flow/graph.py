"""The flow graph: what was made from what, in which scopes, and what each passage does to a gradient."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from gradwhy.flow.spans import Place, Span


class Passage(StrEnum):
    """What an edge of the flow graph does to a gradient."""

    FLOWS = "flows"
    CUT = "cut"
    NOTHING = "nothing"
    """The edge carries no derivative at all: an index, a shape, a condition."""


class Barrier(StrEnum):
    """The neutral fact for which a passage does not flow. Backends state the first group, the search the second."""

    NOT_DIFFERENTIABLE = "not-differentiable"
    INTEGER = "integer"
    INDEX = "index"
    SHAPE = "shape"
    CONDITION = "condition"
    SAMPLE = "sample"
    STOPPED = "stopped"
    HOST = "host"
    NEW_OBJECT = "new-object"
    WRITE = "write"
    """An assignment keeps the value, not how it was computed. It stands on what the op that writes was given."""
    CUSTOM = "custom"
    NOT_REGISTERED = "not-registered"
    FLAT = "flat"
    """The derivative is exactly zero at the values of this run."""
    NOT_FINITE = "not-finite"
    """The derivative is NaN or infinite at the values of this run."""
    UNRECORDED = "unrecorded"
    """Nothing is known of what happened here."""

    BEFORE = "before"
    AFTER = "after"
    PAUSED = "paused"
    UNWATCHED = "unwatched"
    OTHER_RECORDING = "other-recording"


CARRIES_NOTHING = frozenset({Barrier.INDEX, Barrier.SHAPE, Barrier.CONDITION, Barrier.SAMPLE})


class ValueKind(StrEnum):
    VARIABLE = "variable"
    TENSOR = "tensor"
    HOST = "host"
    """A NumPy array or a Python number made from a tensor."""


class Unrecorded(StrEnum):
    """Why a value without an op has no history."""

    NOT_SEEN = "not-seen"
    """It was made before observation began, or in a way that the backend does not see."""
    OTHER_THREAD = "other-thread"
    COMPILED = "compiled"
    DROPPED = "dropped"
    """Its history was given up to keep memory bounded."""


@dataclass(frozen=True, slots=True)
class Value:
    """A tensor, array, variable or parameter that was seen, or a host value made from one.

    A value that no op of the graph has as an output is a leaf. `unrecorded` is None where it is known that the
    value is a true beginning (a variable, a constant, data), else why its history is missing.
    """

    id: int
    kind: ValueKind
    dtype: str
    shape: tuple[int | None, ...] | None
    unrecorded: Unrecorded | None = None

    @property
    def is_differentiable(self) -> bool:
        """Whether values of this dtype can carry a gradient."""
        return self.dtype.startswith(("float", "bfloat", "complex", "half", "double")) or self.dtype == ""


@dataclass(frozen=True, slots=True)
class Input:
    """One edge: a value that an op read, and what that does to a gradient."""

    value: int
    passage: Passage = Passage.FLOWS
    barrier: Barrier | None = None
    is_observed: bool = True
    """False where the link was inferred, such as a host value that likely came back."""
    span: Span | None = None
    """Where this edge stands if it is not where the op stands."""


@dataclass(frozen=True, slots=True)
class Op:
    """One call that made values from values.

    `time` orders ops, scopes, writes and questions of one run. `places` are the user frames, innermost first, from the
    op up to the frame that holds the question's scope. `is_recorded` is the framework's own word whether it keeps the
    op for a backward pass, None where it does not say. Ids increase in the order in which ops ran; `time` may repeat where
    the body of a compiled function ran as one step. `is_boundary` marks an optimizer's update and the backward ops
    of an earlier question: a path does not go through them.
    """

    id: int
    name: str
    time: int
    inputs: tuple[Input, ...]
    outputs: tuple[int, ...]
    places: tuple[Place, ...]
    scopes: tuple[int, ...] = ()
    is_recorded: bool | None = None
    is_boundary: bool = False
    is_user_code: bool = True
    """False where library code stands between the user's line and the op."""


class ScopeRole(StrEnum):
    RECORDS = "records"
    PAUSES = "pauses"


@dataclass(frozen=True, slots=True)
class Watch:
    """From `time` on, the scope records what is done with `value`."""

    value: int
    time: int
    span: Span | None = None


@dataclass(frozen=True, slots=True)
class Scope:
    """A stretch with its own recording rule.

    `kind` is the user's word for it: "GradientTape", "tape.stop_recording()", "torch.no_grad()". `end` is None while it is
    open. A pausing scope names the recordings it pauses; empty means every one. `holds_leaves` is True where the
    recording watches every trainable variable by itself.
    """

    id: int
    kind: str
    role: ScopeRole
    start: int
    end: int | None
    span: Span | None
    pauses: tuple[int, ...] = ()
    watches: tuple[Watch, ...] = ()
    holds_leaves: bool = True
    end_span: Span | None = None
    watches_reach_back: bool = False
    """Whether a watch also counts for the ops that read the value before it and were held for another input's sake."""
    name: str = ""
    """What the user calls it: `tape` in `with tf.GradientTape() as tape`."""


@dataclass(frozen=True, slots=True)
class FlowGraph:
    """Values and ops as a graph, host steps included; a slice of one run, enough to answer one question."""

    values: tuple[Value, ...] = ()
    ops: tuple[Op, ...] = ()
    scopes: tuple[Scope, ...] = ()
    is_complete: bool = True
    """False where part of the target's ancestry is missing."""
