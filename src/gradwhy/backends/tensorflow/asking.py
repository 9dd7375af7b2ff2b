"""One question, described: its names, its sources, and the slice of the flow graph behind it."""

from __future__ import annotations

from types import FrameType
from typing import Any, Protocol

from gradwhy.backends.tensorflow import records as rec
from gradwhy.backends.tensorflow.autograph import mapped_places
from gradwhy.backends.tensorflow.choices import add_choices
from gradwhy.backends.tensorflow.describe import Slice
from gradwhy.backends.tensorflow.doors import Doors
from gradwhy.backends.tensorflow.frames import RawFrames
from gradwhy.backends.tensorflow.functions import Functions
from gradwhy.backends.tensorflow.ops import Registry
from gradwhy.backends.tensorflow.record import Recorder
from gradwhy.backends.tensorflow.scopes import Tapes, TapeScope
from gradwhy.backends.tensorflow.sources import (
    SourceNames,
    definition_of,
    dtype_of,
    facts_of,
    flat_sources,
    full_argument,
    key_of,
    passed_text,
    zipped_with,
)
from gradwhy.backends.tensorflow.standins import with_stand_ins
from gradwhy.backends.tensorflow.unasked import Strangers
from gradwhy.flow import Asked, Failure, FlowGraph, Question, SourceFact, Span, Status
from gradwhy.source.applied import is_applied
from gradwhy.source.guards import checks_finite, drops_none
from gradwhy.source.positions import is_user_code, live_user_frames, places_of
from gradwhy.source.statements import call_argument


class Context(Protocol):
    """What a question is described with."""

    recorder: Recorder
    tapes: Tapes
    functions: Functions
    doors: Doors
    registry: Registry
    dtypes: Any
    tf_stack: Any
    strangers: Strangers


class Building:
    """One question on its way from the framework's objects to the model's."""

    def __init__(
        self,
        questions: Context,
        kind: str,
        target: Any,
        wanted: list[Any],
        statuses: tuple[Status, ...],
        failure: Failure | None,
        frame: FrameType | None,
        frames: RawFrames,
        is_mine: bool,
        scope: TapeScope | None,
        earlier: RawFrames | None,
        tape: Any,
    ) -> None:
        self.questions, self.kind, self.target, self.wanted = questions, kind, target, wanted
        self.statuses, self.failure, self.frame, self.frames = statuses, failure, frame, frames
        self.slice: Slice | None = None
        self.names: SourceNames | None = None
        self.is_mine, self.scope, self.earlier, self.tape = is_mine, scope, earlier, tape

        self.extra_facts: frozenset[SourceFact] = frozenset()
        self.only_reached = False
        self.passed_in: list[Any] = []

    def look_for_strangers(self) -> None:
        """Note the variables that the targets use, that nobody asks about here, and that their model does not hold."""
        if self.tape is None or len(self.tape.watched_variables()) <= len(self.wanted):
            return
        q = self.questions
        try:
            with q.recorder.silence():
                question, graph = self._build(True)
                if graph is not None and self.slice is not None and self.names is not None:
                    q.strangers.look(question, self.slice, self.tape, self.wanted, self.names)
        finally:
            self.slice = self.names = None

    def build(self, with_graph: bool) -> tuple[Question, FlowGraph | None]:
        """The question with its names and, if asked for, the slice of the flow graph behind it."""
        with self.questions.recorder.silence():
            return self._build(with_graph)

    def _build(self, with_graph: bool) -> tuple[Question, FlowGraph | None]:
        q = self.questions
        places = mapped_places(self.frames, q.tf_stack, self.kind.rpartition(".")[2])
        span = places[0].span if places else None
        is_asked_by_user = self.is_mine
        slice_ = Slice(q.recorder, q.tapes, q.functions, q.registry, q.dtypes) if with_graph else None
        targets: tuple[int, ...] = ()
        graph = None
        if slice_ is not None:
            slice_.graphs.passed_in = self.passed_in
        numbers: list[int | None] = [None] * len(self.wanted)
        origins = [origin for t in flat_sources(self.target) if (origin := self.origin(slice_, t)) is not None]
        if slice_ is not None:
            targets = tuple(slice_.value(o) for o in origins)
            slice_.grow()
            keys = [self.origin(slice_, g) for g in self.wanted]
            missing = [k for k in keys if isinstance(k, rec.Made) and slice_.number_of(k) is None]
            if missing and self.scope is not None:
                add_choices(slice_, q.doors.decisions(), self.scope, missing)
            numbers = [slice_.number_of(k) if k is not None else None for k in keys]
            graph = slice_.graph(self.scope, self.watched(slice_))
        passed = self.passed(span, is_asked_by_user)
        names = SourceNames(live_user_frames(self.frame), passed)
        self.slice, self.names = slice_, names
        owner = None if is_asked_by_user else self.owner(names)
        asked = tuple(
            Asked(
                names.source(given, (f"{owner}.trainable_variables",) if owner else ()),
                number,
                status,
                facts_of(given) | self.extra_facts,
                definition_of(q.recorder, key_of(given)),
                self.last_use(given) if number is None else None,
                dtype=dtype_of(given),
            )
            for given, number, status in zip(self.wanted, numbers, self.statuses, strict=True)
            if number is not None or not self.only_reached
        )
        if slice_ is not None and graph is not None and self.tape is not None and not self.only_reached:
            asked = with_stand_ins(asked, self.wanted, slice_, graph, names, list(self.tape.watched_variables()))
        # Where a function's gradient could not be built, no call names a target.
        is_named = span is not None and is_asked_by_user and not self.only_reached
        target = (call_argument(span, 0, "target") if span and is_named else None) or "loss"
        question = Question(
            kind=self.kind,
            framework="tensorflow",
            places=places,
            time=next(q.recorder.clock),
            target=target,
            targets=targets,
            asked=asked,
            recording=self.scope.number if self.scope is not None else None,
            failure=self.failure,
            order=2 if any(self.is_gradient(o) for o in origins) else 1,
            is_filtered=self.is_filtered(span, [p.span for p in places[1:]], is_asked_by_user),
            is_own=self.kind == "gradwhy.why",
            is_applied=not is_asked_by_user or bool(span and is_applied(span)),
            target_span=self.target_span(origins),
            earlier=self.earlier_span(),
        )
        return question, graph

    def origin(self, slice_: Slice | None, given: Any) -> Any:
        key = key_of(given)
        if key is None:
            return None
        if hasattr(key, "_numpy_internal"):
            return self.questions.recorder.of(key)
        return slice_.graphs.symbol(key) if slice_ is not None and hasattr(key, "graph") else None

    def is_filtered(self, span: Span | None, callers: list[Span], is_asked_by_user: bool) -> bool:
        """Whether the program is prepared for what it got."""
        if Status.NAN in self.statuses and Status.NONE not in self.statuses:
            # A loss scaler tries what overflows, and goes lower.
            held = [*self.frame.f_locals.values(), *self.frame.f_globals.values()] if self.frame is not None else []
            return any("LossScale" in type(v).__name__ for v in held) or bool(span and checks_finite(span))
        return bool(span and is_asked_by_user and drops_none(span, callers))

    def last_use(self, given: Any) -> Span | None:
        """Where a variable was read last while the asked tape was open."""
        made = self.questions.recorder.seen(key_of(given))
        read = made.read if isinstance(made, rec.MadeVariable) else None
        if read is None or self.scope is None or self.scope.number not in read[rec.SCOPES]:
            return None
        places = places_of(read[rec.FRAMES][:1])
        return places[0].span if places else None

    def watched(self, slice_: Slice) -> frozenset[int]:
        """The variables in the slice that the tape watched by itself."""
        found: set[int] = set()
        if self.tape is None:
            return frozenset()
        for variable in self.tape.watched_variables():
            handle = key_of(variable)
            number = slice_.number_of(self.questions.recorder.of(handle)) if handle is not None else None
            if number is not None:
                found.add(number)
        return frozenset(found)

    def passed(self, span: Span | None, is_asked_by_user: bool) -> str | None:
        if self.kind.startswith("optimizer"):
            return passed_text(span, zipped_with(full_argument(span, 0, "grads_and_vars")))
        if not is_asked_by_user:
            return None
        position, keyword = (0, "tensor") if self.kind == "tape.watch" else (1, "sources")
        return passed_text(span, full_argument(span, position, keyword))

    def owner(self, names: SourceNames) -> str | None:
        """The name of the model whose library code asked."""
        frame = self.frame
        while frame is not None and not is_user_code(frame.f_code):
            owner = frame.f_locals.get("self")
            if owner is not None and hasattr(type(owner), "fit"):
                return names.names.of(owner)[0] or None
            frame = frame.f_back
        return None

    def is_gradient(self, origin: Any) -> bool:
        record = getattr(origin, "record", None)
        return record is not None and record[rec.EXTRA] is rec.BACKWARD

    def target_span(self, origins: list[Any]) -> Span | None:
        for origin in origins:
            record = getattr(origin, "record", None)
            if record is not None and record[rec.FRAMES]:
                scope_frames = self.scope.frames if self.scope is not None else ()
                home = scope_frames[0][0] if scope_frames else None
                frames = [f for f in record[rec.FRAMES] if f[0] is home] or record[rec.FRAMES][:1]
                places = places_of(frames[:1])
                return places[0].span if places else None
        return None

    def earlier_span(self) -> Span | None:
        places = places_of(self.earlier[:1]) if self.earlier else ()
        return places[0].span if places else None
