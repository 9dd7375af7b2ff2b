"""From a question in the making to the question and its flow graph, in the user's own names."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace

from torch import Tensor
from torch.nn import Parameter

from gradwhy.backends.torch import failures, ops, overwritten
from gradwhy.backends.torch.asking import BACKWARD, GRAD, Asking, Pass
from gradwhy.backends.torch.drawing import AUTOGRAD, Drawing
from gradwhy.backends.torch.overwritten import Lapse
from gradwhy.backends.torch.record import Recorder
from gradwhy.backends.torch.sources import Sources, made_at, span_of, switched_off_at
from gradwhy.backends.torch.trail import Record
from gradwhy.flow import Asked, Failure, FlowGraph, Overwritten, Place, Question, Source, Status
from gradwhy.source.files import read
from gradwhy.source.guards import drops_none
from gradwhy.source.locate import call_at, expression_at, text_of
from gradwhy.source.names import Names
from gradwhy.source.positions import live_user_frames, places_of
from gradwhy.source.statements import call_argument, short_text, written_name

Build = Callable[[bool], tuple[Question, FlowGraph | None]]

TABLES = {"_modules": "", "_parameters": "", "_buffers": ""}
SKIPPED = frozenset(
    {"_non_persistent_buffers_set", "_backward_hooks", "_forward_hooks", "_forward_pre_hooks", "_is_full_backward_hook"}
)


def builder(asking: Asking, recorder: Recorder) -> Build:
    """What builds the question, with its flow graph or without, while the hook of the question runs."""
    return lambda with_graph: _Description(asking, recorder).build(with_graph)


class _Description:
    def __init__(self, asking: Asking, recorder: Recorder) -> None:
        self.asking = asking
        self.recorder = recorder
        self.records = [recorder.of(tensor) for tensor, _ in asking.sources]
        self.names = Names(live_user_frames(asking.frame), tables=TABLES, is_leaf=_is_tensor, skip=SKIPPED)
        self.sources = Sources(asking, recorder, self.names)

    def build(self, with_graph: bool) -> tuple[Question, FlowGraph | None]:
        asking = self.asking
        targets = tuple({id(record): record for passed in asking.passes for record in passed.targets}.values())
        drawing = Drawing(targets, self.records, *self._alive()) if with_graph else None
        places = places_of(asking.frames)
        question = Question(
            kind=asking.kind,
            framework="torch",
            places=places,
            time=asking.time,
            target=self._target(),
            targets=tuple(drawing.number(record) for record in targets) if drawing else (),
            asked=tuple(
                self._asked(*pair, record, drawing) for pair, record in zip(asking.sources, self.records, strict=True)
            ),
            recording=AUTOGRAD if drawing else None,
            failure=self._failure(),
            order=self._order(targets),
            is_filtered=self._is_filtered(places),
            target_span=made_at(targets[-1]) if targets else None,
            earlier=span_of(asking.earlier.frames) if asking.earlier is not None else None,
        )
        return question, drawing.graph(asking.look) if drawing else None

    def _alive(self) -> tuple[dict[int, tuple[int, ...]], dict[int, int]]:
        shapes: dict[int, tuple[int, ...]] = {}
        tensor_ids = {id(entry.record): key for key, entry in self.recorder.table.items()}
        known = [(tensor, record) for (tensor, _), record in zip(self.asking.sources, self.records, strict=True)]
        for passed in self.asking.passes:
            known += [(t, record) for t, record in zip(passed.tensors(), passed.targets, strict=True) if t is not None]
        for tensor, record in known:
            shapes[id(record)] = tuple(tensor.shape)
        return shapes, tensor_ids

    def _asked(self, tensor: Tensor, status: Status, record: Record, drawing: Drawing | None) -> Asked:
        value = drawing.number(record) if drawing else None
        return self.sources.asked(tensor, status, record, source=self._source(tensor), value=value)

    def _source(self, tensor: Tensor) -> Source:
        name, aliases = self.names.of(tensor)
        kind = "Parameter" if isinstance(tensor, Parameter) else type(tensor).__name__
        return Source(name or self._position_of(tensor), aliases, kind, tuple(tensor.shape))

    def _position_of(self, tensor: Tensor) -> str:
        """What to call a source that no frame reaches: its place among those that were asked for."""
        written = self._written_source()
        if written is not None:
            return written
        position = next(i for i, (source, _) in enumerate(self.asking.sources) if source is tensor)
        what = "inputs" if self.asking.kind == GRAD else "parameters"
        return f"{what}[{position}]"

    def _written_source(self) -> str | None:
        """The source as the asking line writes it: `layer.weight` in `layer.weight.grad`."""
        span = span_of(self.asking.frames)
        file = read(span.file) if span is not None else None
        if span is None or file is None or len(self.asking.sources) != 1:
            return None
        if self.asking.kind == GRAD:
            return call_argument(span, 1, "inputs")
        read_there = expression_at(span)
        is_read = isinstance(read_there, ast.Attribute) and read_there.attr == "grad"
        return short_text(text_of(file, read_there.value)) if is_read else None  # type: ignore[union-attr]

    def _failure(self) -> Failure | None:
        asking = self.asking
        if asking.problem is None:
            return None
        failure = failures.failure_of(asking.problem, asking.passes)
        if failure.kind == failures.SWITCHED_OFF:
            return replace(failure, span=switched_off_at(asking.frames))
        if failure.kind != failures.CHANGED or not asking.passes:
            return failure
        lapse = overwritten.find(self.recorder, asking.passes[-1], asking.problem)
        return replace(failure, overwritten=self._overwritten(lapse)) if lapse is not None else failure

    def _overwritten(self, lapse: Lapse) -> Overwritten:
        span = span_of(lapse.write.frames)
        name = written_name(span) if span is not None and lapse.key is None else None
        if lapse.key is not None:
            name = self.names.of_id(lapse.key)
        kept = span_of(lapse.kept_by.frames)
        is_step = lapse.key is not None
        return Overwritten(name or ops.shown_name(lapse.kept_by), span, kept, is_step, lapse.write.is_in_part)

    def _target(self) -> str:
        """The target as the user wrote it where the pass was asked for."""
        if not self.asking.passes:
            return self.asking.target
        passed = self.asking.passes[-1]
        written = _target_text(passed, is_grad=self.asking.kind == GRAD)
        if written is not None and written.isidentifier():
            return written
        alive = next((tensor for tensor in passed.tensors() if tensor is not None), None)
        name = self.names.of(alive)[0] if alive is not None else ""
        return name or written or "target"

    @staticmethod
    def _order(targets: tuple[Record, ...]) -> int:
        """2 where a gradient is what is differentiated."""
        return 2 if any(record.call is not None and record.call.func == ops.GRADIENT for record in targets) else 1

    def _is_filtered(self, places: tuple[Place, ...]) -> bool:
        if self.asking.kind != GRAD or not places or self.asking.problem is not None:
            return False
        return drops_none(places[0].span, [place.span for place in places[1:]])


def _is_tensor(value: object) -> bool:
    return issubclass(type(value), Tensor)


def _target_text(passed: Pass, *, is_grad: bool) -> str | None:
    """What the call of a backward pass says its target is."""
    span = span_of(passed.frames)
    call = call_at(span) if span is not None else None
    file = read(span.file) if span is not None else None
    if span is None or call is None or file is None:
        return None
    func = call.func
    is_method = isinstance(func, ast.Attribute) and func.attr == BACKWARD and not call.args
    if is_method and not is_grad:
        return short_text(text_of(file, func.value))  # type: ignore[attr-defined]
    return call_argument(span, 0, "outputs" if is_grad else "tensors")
