"""The moments at which a program asks TensorFlow for gradients, and what it is told."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from types import FrameType
from typing import Any

from gradwhy.backends.contract import Answer, Witness
from gradwhy.backends.patches import Hooks
from gradwhy.backends.tensorflow import py_functions
from gradwhy.backends.tensorflow.asking import Building
from gradwhy.backends.tensorflow.doors import Doors
from gradwhy.backends.tensorflow.frames import walk
from gradwhy.backends.tensorflow.functions import Functions
from gradwhy.backends.tensorflow.numbers import numbers_of
from gradwhy.backends.tensorflow.ops import Registry
from gradwhy.backends.tensorflow.record import Recorder
from gradwhy.backends.tensorflow.scopes import Tapes
from gradwhy.backends.tensorflow.sources import (
    flat_sources,
    inner_variable,
    key_of,
)
from gradwhy.backends.tensorflow.unasked import Strangers, stuck_op
from gradwhy.flow import Failure, Numbers, SourceFact, Status
from gradwhy.host.reading import resolved
from gradwhy.source.positions import is_user_code, places_of
from gradwhy.source.statements import names_read

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
        self.registry = Registry(modules["ops"], modules["op_defs"])
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
            token = py_functions.asked_for(sys._getframe(3))
            if token is not None:
                self.recorder.custom_none.setdefault(token, set()).update(py_functions.missing(answers))
                return
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
            if failure.kind == "used-up" and self.tapes.of(args[0]) is None:
                failure = replace(failure, kind="never-recording")
            statuses = (Status.ERROR,) * len(wanted)
            self.ask(kind, args[0], target, sources, wanted, statuses, failure, sys._getframe(3))
            self.witness.escaped(problem)

        return raised

    def _not_watchable(self, token: Any, problem: BaseException, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if not isinstance(problem, Exception):
            return
        given = args[1] if len(args) > 1 else kwargs.get("tensor")
        wanted = flat_sources(given)
        is_variable = any(inner_variable(one) is not one for one in wanted)
        kind = "not-watchable" if is_variable else "not-a-tensor"
        if self.tapes.of(args[0]) is None:
            kind = "never-recording"
        failure = Failure(type(problem).__name__, str(problem), kind)
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
