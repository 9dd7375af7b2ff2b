"""The moments at which a program asks TensorFlow for gradients, and what it is told."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from functools import partial
from types import FrameType
from typing import Any

from gradwhy.backends.contract import Answer, Witness
from gradwhy.backends.patches import Hooks
from gradwhy.backends.tensorflow import records as rec
from gradwhy.backends.tensorflow.autograph import mapped_places
from gradwhy.backends.tensorflow.describe import Slice
from gradwhy.backends.tensorflow.doors import Doors
from gradwhy.backends.tensorflow.frames import RawFrames, walk
from gradwhy.backends.tensorflow.functions import Functions
from gradwhy.backends.tensorflow.numbers import numbers_of
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
from gradwhy.backends.tensorflow.unasked import Strangers, stuck_op
from gradwhy.flow import Asked, Failure, FlowGraph, Numbers, Question, SourceFact, Span, Status
from gradwhy.host.reading import resolved
from gradwhy.source.applied import is_applied
from gradwhy.source.guards import checks_finite, drops_none
from gradwhy.source.positions import is_user_code, live_user_frames, places_of
from gradwhy.source.statements import call_argument, names_read

_KINDS = {"gradient": "tape.gradient", "jacobian": "tape.jacobian", "batch_jacobian": "tape.batch_jacobian"}
_NO_GRADIENT = re.compile(r"has no entry for: (\w+)|op type: (\w+)|No gradient defined for operation.*?'(\w+)'")


class Questions:
    """Holds the doors at which gradients are asked for."""

    def __init__(
        self,
        witness: Witness,
        recorder: Recorder,
        tapes: Tapes,
        functions: Functions,
        doors: Doors,
        modules: dict[str, Any],
    ) -> None:
        self.witness, self.recorder, self.tapes = witness, recorder, tapes
        self.functions, self.doors = functions, doors
        self.registry = Registry(modules["ops"])
        self.dtypes, self.tf_stack = modules["dtypes"], modules["tf_stack"]
        self.strangers = Strangers(witness, recorder)
        self._looked: set[Any] = set()

    def attach(self, hooks: Hooks, backprop: Any) -> None:
        tape = backprop.GradientTape
        for name, kind in _KINDS.items():
            before, after, raised = self._begins(kind), self._answered(kind), self._raised(kind)
            hooks.wrap(tape, name, f"tensorflow.{name}", before=before, after=after, raised=raised)
        hooks.wrap(tape, "watch", "tensorflow.watching", raised=self._not_watchable)

    def _begins(self, kind: str) -> Any:
        def begins(args: tuple[Any, ...], kwargs: Any) -> bool:
            state = self.recorder.state
            was = state.is_backward
            state.is_backward = True
            # Where no tape is open, nobody can ask about the ops of this gradient one by one.
            state.is_muted = state.is_muted or not state.scopes
            return was

        return begins

    def _answered(self, kind: str) -> Any:
        def answered(was: bool, result: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            is_muted = self.ends(was)
            if was:
                return
            target, sources = arguments(args, kwargs)
            answers = flat_sources(result)
            wanted = flat_sources(sources)
            if len(answers) != len(wanted):
                answers = [result] * len(wanted)
            if is_muted:
                keys = [key for t in (*flat_sources(target), *wanted) if (key := key_of(t)) is not None]
                self.recorder.keep_gradients(answers, keys, sys._getframe(3))
            statuses = tuple(status_of(a) for a in answers)
            self.ask(kind, args[0], target, sources, wanted, statuses, None, sys._getframe(3), answers)

        return answered

    def ends(self, was: bool) -> bool:
        """A gradient has been computed; whether its ops went unrecorded."""
        state = self.recorder.state
        is_muted = state.is_muted
        state.is_backward = bool(was)
        if not was:
            state.is_muted = False
        return is_muted

    def _raised(self, kind: str) -> Any:
        def raised(was: bool, problem: BaseException, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            self.ends(was)
            if was or not isinstance(problem, Exception) or len(args) + len(kwargs) < 3:
                return
            target, sources = arguments(args, kwargs)
            wanted = flat_sources(sources)
            failure = failure_of(problem)
            statuses = (Status.ERROR,) * len(wanted)
            self.ask(kind, args[0], target, sources, wanted, statuses, failure, sys._getframe(3))
            self.witness.escaped(problem)

        return raised

    def _not_watchable(self, token: Any, problem: BaseException, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if not isinstance(problem, Exception):
            return
        given = args[1] if len(args) > 1 else kwargs.get("tensor")
        wanted = flat_sources(given)
        failure = Failure(type(problem).__name__, str(problem), "not-watchable")
        statuses = (Status.ERROR,) * len(wanted)
        self.ask("tape.watch", args[0], None, given, wanted, statuses, failure, sys._getframe(3))
        self.witness.escaped(problem)

    def ask(
        self,
        kind: str,
        tape: Any,
        target: Any,
        sources: Any,
        wanted: list[Any],
        statuses: tuple[Status, ...],
        failure: Failure | None,
        frame: FrameType | None,
        answers: Sequence[Any] = (),
    ) -> None:
        """Tell the witness of a question, with the means to describe it."""
        frames, mine = walk(frame)
        scope = self.tapes.of(tape)
        earlier = scope.asked[-1] if scope is not None and scope.asked else None
        building = Building(self, kind, target, wanted, statuses, failure, frame, frames, mine, scope, earlier, tape)
        key = (kind, tuple((id(code), lasti) for code, lasti in frames[:2]))
        self.strangers.note_asked(wanted)
        if key not in self._looked and kind != "tape.watch":
            self._looked.add(key)
            building.look_for_strangers()
        numbers = partial(self.numbers, target, answers)
        self.witness.answered(Answer(kind, "tensorflow", key, statuses, building.build, numbers))
        if scope is not None:
            scope.asked.append(frames)
            del scope.asked[:-2]
        self.recorder.question_answered()
        self.doors.question_answered()

    def numbers(self, target: Any, answers: Sequence[Any]) -> tuple[Numbers | None, tuple[Numbers | None, ...]]:
        """What the target and the gradients hold."""
        with self.recorder.silence():
            whole = [numbers_of(part) for part in flat_sources(target)]
            return whole[0] if len(whole) == 1 else None, tuple(map(numbers_of, answers))

    def why(self, target: Any, source: Any, frame: FrameType | None) -> bool:
        """The user's own question about two values; whether they are TensorFlow's."""
        scope, tape = self.tapes.last, self.tapes.last_tape()
        if key_of(target) is None or key_of(source) is None:
            return False
        frames, mine = walk(frame)
        statuses = (Status.NONE,)
        kind = "gradwhy.why"
        building = Building(self, kind, target, [source], statuses, None, frame, frames, mine, scope, None, tape)
        key = (kind, tuple((id(code), lasti) for code, lasti in frames[:2]))
        self.witness.answered(Answer(kind, "tensorflow", key, statuses, building.build))
        return True

    def settle(self, problem: BaseException | None) -> None:
        """What only the program's end shows."""
        self.strangers.settle()
        stuck = stuck_op(self.recorder, problem)
        if stuck is not None and problem is not None:
            self.ask_of_stuck(stuck, problem)

    def unknown_to_optimizer(self, strangers: list[Any], problem: BaseException, frame: FrameType | None) -> None:
        """An optimizer refused variables that it was not built for."""
        frames, mine = walk(frame)
        failure = Failure(type(problem).__name__, str(problem), "unknown-variable")
        statuses = (Status.ERROR,) * len(strangers)
        kind = "optimizer.apply_gradients"
        building = Building(self, kind, None, strangers, statuses, failure, frame, frames, mine, None, None, None)
        building.extra_facts = frozenset({SourceFact.UNKNOWN_TO_OPTIMIZER})
        key = (kind, tuple((id(code), lasti) for code, lasti in frames[:2]))
        self.witness.answered(Answer(kind, "tensorflow", key, statuses, building.build))

    def ask_of_stuck(self, stuck: Any, problem: BaseException) -> None:
        """A function's gradient could not be built, which ended the program before any tape was asked."""
        frame = user_frame_of(problem)
        frames, mine = walk(frame)
        scope = self.tapes.last
        tape = self.tapes.last_tape()
        if scope is None or tape is None:
            return
        wanted = list(tape.watched_variables())
        span = places_of(frames[:1])[0].span if frames else None
        passed = [resolved(name, frame) for name in (names_read(span) if span else ())]
        wanted += [v for v in passed if hasattr(key_of(v), "_numpy_internal") and not any(v is w for w in wanted)]
        statuses = (Status.ERROR,) * len(wanted)
        failure = failure_of(problem) if isinstance(problem, Exception) else None
        target = stuck.outputs[0]
        building = Building(
            self, "tape.gradient", target, wanted, statuses, failure, frame, frames, mine, scope, None, tape
        )
        building.only_reached = True
        building.passed_in = [key for v in passed if (key := key_of(v)) is not None]
        key = ("stuck", stuck.name)
        self.witness.answered(Answer("tape.gradient", "tensorflow", key, statuses, building.build))


class Building:
    """One question on its way from the framework's objects to the model's."""

    def __init__(
        self,
        questions: Questions,
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
        target = (call_argument(span, 0, "target") if span and is_asked_by_user else None) or "loss"
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


def user_frame_of(problem: BaseException) -> FrameType | None:
    """The innermost frame of the user's own code that an exception passed."""
    found = None
    traceback = problem.__traceback__
    while traceback is not None:
        if is_user_code(traceback.tb_frame.f_code):
            found = traceback.tb_frame
        traceback = traceback.tb_next
    return found


def arguments(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any]:
    """The target and the sources of `tape.gradient` and its kin."""
    target = args[1] if len(args) > 1 else kwargs.get("target")
    sources = args[2] if len(args) > 2 else kwargs.get("sources", kwargs.get("source"))
    return target, sources


def status_of(gradient: Any) -> Status:
    """What came back for one source. The gradients of a graph that is being built count as arrived."""
    if gradient is None:
        return Status.NONE
    if hasattr(gradient, "indices") and hasattr(gradient, "values"):
        gradient = gradient.values
    if not hasattr(gradient, "_numpy_internal"):
        return Status.OK
    array = gradient._numpy_internal()
    if array.dtype.kind not in "fc":
        return Status.OK
    flat = array.reshape(-1)
    if array.dtype.kind == "f" and array.dtype.itemsize >= 4:
        # One pass: the sum of squares is 0 only for zeros (or an underflow, looked at again), and NaN or inf for those.
        total = float(flat.dot(flat))
        if 0.0 < total < float("inf"):
            return Status.OK
    if not flat.size:
        return Status.OK
    if (flat != flat).any() or (abs(flat) == float("inf")).any():
        return Status.NAN
    return Status.OK if flat.any() else Status.ZERO


def failure_of(problem: Exception) -> Failure:
    """What an exception from TensorFlow means, in the model's words."""
    message = str(problem)
    kind = op = None
    if isinstance(problem, RuntimeError) and "can only be used to compute one set" in message:
        kind = "used-up"
    elif isinstance(problem, LookupError):
        kind = "no-gradient-registered"
        found = _NO_GRADIENT.search(message)
        op = next((g for g in found.groups() if g), None) if found else None
    return Failure(type(problem).__name__, message, kind, op)
