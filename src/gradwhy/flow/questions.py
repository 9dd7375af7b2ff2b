"""What the program asked, and what it got."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from gradwhy.flow.spans import Place, Span


class Status(StrEnum):
    """What came back for one source of one question."""

    OK = "ok"
    NONE = "none"
    ZERO = "zero"
    NAN = "nan"
    ERROR = "error"
    """The program asked and an exception came instead of an answer."""
    UNHELD = "unheld"
    """A gradient came, and no optimizer holds the source, so that nothing moves it."""


class SourceFact(StrEnum):
    """What is known of a source besides its path."""

    FROZEN = "frozen"
    """It is marked as not trainable."""
    STATISTIC = "statistic"
    """It is no trainable weight by its nature: a moving mean, a metric's total, a random generator's state."""
    INTEGER = "integer"
    NOT_LEAF = "not-leaf"
    """A gradient was to be kept at it, and gradients are kept at leaves only."""
    STANDS_FOR_LEAF = "stands-for-leaf"
    """Nothing of the program's leads to the leaf any more that it was made from."""
    SYMBOLIC = "symbolic"
    """It stands for a value (a Keras symbolic tensor, a shape) and never holds one."""
    NOT_ASKED = "not-asked"
    """The question leaves it out, and the program looks for its gradient in the answer."""
    HELD_BY_OPTIMIZER = "held-by-optimizer"
    REQUIRED = "required"
    """Something that the program uses stops it where this source gets no gradient."""
    UNKNOWN_TO_OPTIMIZER = "unknown-to-optimizer"
    UNKNOWN_TO_MODEL = "unknown-to-model"
    MADE_IN_CALL = "made-in-call"
    """It was made anew while the model was called, and is used in that call only."""
    HOST = "host"
    """It is a NumPy array or a Python number, not a value of the framework."""


@dataclass(frozen=True, slots=True)
class Source:
    """What is differentiated with respect to.

    `name` is the shortest expression from the innermost user frame that reaches the object, `aliases` the other ones
    seen. `definition` is where the program made it, where that is known.
    """

    name: str
    aliases: tuple[str, ...] = ()
    class_name: str = field(default="", metadata={"json": "class"})
    shape: tuple[int | None, ...] | None = None


@dataclass(frozen=True, slots=True)
class Asked:
    """One source of one question: the answer, and the facts about it."""

    source: Source
    value: int | None
    """Its value in the flow graph; None where the graph does not hold it."""
    status: Status
    facts: frozenset[SourceFact] = frozenset()
    definition: Span | None = None
    last_use: Span | None = None
    stand_in: str | None = None
    """The name of the other object that the target used where this one was expected."""
    stand_in_span: Span | None = None
    """The statement that put that other object in the source's stead."""
    stand_in_kind: str | None = None
    """How the other object came about, in a neutral word, such as `clone` or `derived`; None where nothing is known."""
    dtype: str = ""
    """The source's own dtype, such as `int32`; empty where it is not known."""
    dropped: Span | None = None
    """The last op that computed something from a source from which the target was not made."""
    cleared: Span | None = None
    """Where the gradient that had come was taken away again, before it was asked for."""
    unreached: Span | None = None
    """The condition that did not hold, behind which the program would have used the source."""
    beside: Span | None = None
    """Where the parts that stand beside a source that no op ever read are used."""


@dataclass(frozen=True, slots=True)
class Numbers:
    """What an array holds: its shape, its norm, and its first values, all of them where there are few."""

    shape: tuple[int, ...]
    norm: float
    first: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Overwritten:
    """A value that a backward pass needed and that was written to after it had been kept.

    `name` is the user's for what was written, `span` the write, `kept` where the op stands that kept the value.
    """

    name: str
    span: Span | None
    kept: Span | None = None
    is_by_optimizer: bool = False
    is_in_part: bool = False
    """Only some elements of it were written."""


@dataclass(frozen=True, slots=True)
class Failure:
    """The exception with which the framework answered.

    `kind` is a neutral word for what went wrong, None where the backend does not recognise it. `op` and `span` are what it
    complains of, and where that stands.
    """

    type_name: str
    message: str
    kind: str | None = None
    op: str | None = None
    span: Span | None = None
    overwritten: Overwritten | None = None


@dataclass(frozen=True, slots=True)
class Question:
    """One request for gradients.

    `recording` is the scope whose record is asked, None where the framework records everything that is not paused.
    `targets` are values of the flow graph. `is_filtered` says that the program drops a missing gradient by itself
    before anything uses it.
    """

    kind: str
    framework: str
    places: tuple[Place, ...]
    time: int
    target: str
    targets: tuple[int, ...]
    asked: tuple[Asked, ...]
    recording: int | None = None
    failure: Failure | None = None
    order: int = 1
    """2 where the target is itself a gradient."""
    is_filtered: bool = False
    is_own: bool = False
    """The user asked gradwhy, not the framework: there is no answer but the path."""
    is_applied: bool = False
    """The answer goes to an optimizer's update, which passes over what is missing or complains by itself."""
    target_span: Span | None = None
    """Where the target was made."""
    earlier: Span | None = None
    """Where the same recording, or graph, was asked before."""

    @property
    def span(self) -> Span | None:
        return self.places[0].span if self.places else None
