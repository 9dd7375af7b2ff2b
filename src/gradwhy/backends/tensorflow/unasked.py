"""What a run shows beside its questions: parameters that nobody asked about, and errors that no question caught."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

from gradwhy.backends.contract import Answer, Witness
from gradwhy.backends.tensorflow import records as rec
from gradwhy.backends.tensorflow.autograph import places_of_stack
from gradwhy.backends.tensorflow.describe import Slice
from gradwhy.backends.tensorflow.graphs import Symbol
from gradwhy.backends.tensorflow.keras import model_variables
from gradwhy.backends.tensorflow.record import Recorder
from gradwhy.backends.tensorflow.sources import SourceNames, definition_of, facts_of, key_of
from gradwhy.flow import Asked, FlowGraph, Place, Question, SourceFact, Status
from gradwhy.source.positions import places_of

_OPERATION = re.compile(r"No gradient defined for operation\s*'(?P<name>[^']+)' \(op type: (?P<type>\w+)\)")


@dataclass(frozen=True, slots=True)
class Unasked:
    """A trainable variable that a model's call reads, that the model does not hold, and that this question left out."""

    handle: int
    question: Question


class Strangers:
    """Trainable variables that a model uses and does not know.

    Only the end of the run shows whether another question, or another optimizer, takes care of one.
    """

    def __init__(self, witness: Witness, recorder: Recorder) -> None:
        self.witness, self.recorder = witness, recorder
        self.asked: set[int] = set()
        self.found: dict[int, Unasked] = {}
        self._kept: list[Any] = []

    def note_asked(self, wanted: list[Any]) -> None:
        """Variables that the program asked about, in whatever question."""
        self.asked.update(id(key) for given in wanted if (key := key_of(given)) is not None)

    def look(self, question: Question, slice_: Slice, tape: Any, wanted: list[Any], names: SourceNames) -> None:
        """Note the variables behind this question's targets that its model does not hold."""
        left_out = {id(key_of(v)): v for v in tape.watched_variables()}
        for given in wanted:
            left_out.pop(id(key_of(given)), None)
        if not left_out:
            return
        for made, layers, places in reads_in_calls(slice_):
            handle = made() if isinstance(made, rec.Made) else None
            variable = left_out.get(id(handle)) if handle is not None else None
            model = layers[0]() if layers else None
            if variable is None or model is None or id(handle) in self.found:
                continue
            fact = self._fact(made, handle, model, layers[-1](), wanted)
            if fact is not None:
                self._note(question, variable, handle, fact, places, names)

    def _fact(self, made: Any, handle: Any, model: Any, reader: Any, wanted: list[Any]) -> SourceFact | None:
        held = {id(key_of(v)) for v in model_variables(model)}
        is_trained = any(id(key_of(given)) in held for given in wanted)
        if id(handle) in held or not is_trained:
            return None
        if made.record[rec.EXTRA]:
            return SourceFact.MADE_IN_CALL
        # A variable that its own layer reads belongs to another model that happens to be called here.
        is_owned = reader is not None and id(handle) in {id(key_of(v)) for v in model_variables(reader)}
        return None if is_owned else SourceFact.UNKNOWN_TO_MODEL

    def _note(
        self,
        question: Question,
        variable: Any,
        handle: Any,
        fact: SourceFact,
        places: tuple[Place, ...],
        names: SourceNames,
    ) -> None:
        source = names.source(variable)
        if fact is SourceFact.MADE_IN_CALL and names.names.of(variable)[0]:
            # The call only built what the program holds elsewhere.
            fact = SourceFact.UNKNOWN_TO_MODEL
        asked = Asked(
            source,
            None,
            Status.NONE,
            facts_of(variable) | {fact},
            definition_of(self.recorder, handle),
            places[0].span if places else None,
        )
        told = replace(question, kind="trainable_variables", asked=(asked,), targets=(), is_filtered=False)
        self.found[id(handle)] = Unasked(id(handle), told)
        # An id is only good while its tensor lives; a stranger is kept to the end, and there are few.
        self._kept.append(handle)

    def settle(self) -> None:
        """Tell of every variable that no question of the whole run asked about."""
        for handle, unasked in self.found.items():
            if handle not in self.asked:
                self._tell(unasked)

    def _tell(self, unasked: Unasked) -> None:
        def build(with_graph: bool) -> tuple[Question, FlowGraph | None]:
            return unasked.question, FlowGraph()

        key = ("trainable_variables", unasked.handle)
        self.witness.answered(Answer("trainable_variables", "tensorflow", key, (Status.NONE,), build))


def reads_in_calls(slice_: Slice) -> list[tuple[Any, tuple[Any, ...], tuple[Place, ...]]]:
    """The reads of variables in the slice that happened while a layer was called: variable, layers, places."""
    found = []
    for origin in slice_.looked_at:
        if isinstance(origin, Symbol):
            op = origin.tensor.op
            entry = slice_.recorder.graphs.get(origin.body.graph)
            known = entry.ops.get(op.name) if entry is not None else None
            if op.type in rec.READS and known is not None and known[2]:
                variable = slice_.graphs.resolved(Symbol(origin.body, op.inputs[0]))
                if not isinstance(variable, Symbol):
                    found.append((variable, known[2], places_of_stack(op.traceback)))
        elif (
            origin.record[rec.OP] in rec.READS
            and isinstance(origin.record[rec.EXTRA], tuple)
            and origin.record[rec.EXTRA]
        ):
            record = origin.record
            found.append((record[rec.INPUTS][0], record[rec.EXTRA], places_of(record[rec.FRAMES])))
    return found


def stuck_op(recorder: Recorder, problem: BaseException | None) -> Any:
    """The graph op without a gradient that a LookupError names, in the graph that was built last; None if there is none.

    TensorFlow takes its own frames out of its tracebacks, so that the message is all that is left.
    """
    named = _OPERATION.search(str(problem)) if isinstance(problem, LookupError) else None
    if named is None:
        return None
    for graph, entry in reversed(list(recorder.graphs.items())):
        if named["name"] in entry.ops:
            try:
                op = graph.get_operation_by_name(named["name"])
            except KeyError:
                # TensorFlow has taken the graph apart: a copy of it is what the program calls.
                continue
            if op.type == named["type"]:
                return op
    return None
