"""What is known of the sources of one question besides their paths."""

from __future__ import annotations

import ast
import difflib
from functools import cached_property, lru_cache

import torch
from torch import Tensor, nn
from torch.nn import Parameter

from gradwhy.backends.torch.asking import CONSTRUCTION, READ, STEP, Asking
from gradwhy.backends.torch.lineage import ancestry
from gradwhy.backends.torch.modules import Owners, live_modules, neighbours, registered
from gradwhy.backends.torch.record import Recorder
from gradwhy.backends.torch.trail import Call, Frames, Record
from gradwhy.flow import Asked, Source, SourceFact, Span, Status
from gradwhy.source.files import read, shown_path
from gradwhy.source.locate import span_of_syntax
from gradwhy.source.names import Names
from gradwhy.source.positions import places_of

_KEEPS = frozenset({READ, STEP, CONSTRUCTION})
"""The kinds of question that ask for what is kept at a leaf."""
_ALIKE = 0.75
_MOST_LOOKED_UP = 64

StandIn = tuple[str, Span | None, str]


class Sources:
    """The facts about the sources of a question, and what stands in their place."""

    def __init__(self, asking: Asking, recorder: Recorder, names: Names) -> None:
        self._asking = asking
        self._recorder = recorder
        self._names = names
        self._looked_up = 0

    def asked(self, tensor: Tensor, status: Status, record: Record, *, source: Source, value: int | None) -> Asked:
        """A source as the question carries it. `value` is its number in the flow graph, None where none is drawn."""
        stand_in: StandIn | None = None
        is_used = True
        dropped = beside = None
        self._looked_up += status is not Status.OK
        if value is not None and status in (Status.NONE, Status.ERROR) and self._looked_up <= _MOST_LOOKED_UP:
            if id(record) not in self._ancestry:
                dropped, is_used = self._dropped(record)
                beside = self._beside(tensor) if not is_used else None
            stand_in = self._stand_in(tensor, record, source.name, is_used=is_used)
        return Asked(
            source=source,
            value=value,
            status=status,
            facts=self._facts(tensor, record),
            definition=self._frozen_at(tensor, record) or made_at(record),
            last_use=span_of(record.used) if is_used else None,
            stand_in=stand_in[0] if stand_in else None,
            stand_in_span=stand_in[1] if stand_in else None,
            stand_in_kind=stand_in[2] if stand_in else None,
            dropped=dropped,
            beside=beside,
            cleared=self._cleared(record) if status is Status.NONE else None,
        )

    def _frozen_at(self, tensor: Tensor, record: Record) -> Span | None:
        """Where a leaf ceased to ask for a gradient; by the text, where it was not watched and one statement alone may have."""
        if tensor.requires_grad or not record.was_watched or record.switched:
            return span_of(record.switched)
        files = dict.fromkeys(code.co_filename for code, _ in self._asking.frames)
        found = [span for file in files for span in _freezing_statements(file)]
        return found[0] if len(found) == 1 else None

    def _cleared(self, record: Record) -> Span | None:
        is_later = bool(self._asking.passes) and record.cleared > self._asking.passes[-1].time
        return span_of(record.cleared_by) if is_later and record.cleared_by else None

    @cached_property
    def _ancestry(self) -> frozenset[int]:
        targets = [target for passed in self._asking.passes for target in passed.targets]
        return frozenset(id(record) for record in ancestry(targets))

    @cached_property
    def _owners(self) -> Owners:
        return Owners()

    # Facts

    def _facts(self, tensor: Tensor, record: Record) -> frozenset[SourceFact]:
        asking = self._asking
        facts: set[SourceFact] = set()
        if not (tensor.is_floating_point() or tensor.is_complex()):
            facts.add(SourceFact.INTEGER)
        elif not tensor.requires_grad and (record.is_parameter or record.was_watched):
            facts.add(SourceFact.FROZEN)
        if not tensor.is_leaf and not tensor.retains_grad and asking.kind in _KEEPS:
            facts.add(SourceFact.NOT_LEAF)
            if self._stands_for_leaf(record):
                facts.add(SourceFact.STANDS_FOR_LEAF)
        if id(tensor) in asking.held:
            facts.add(SourceFact.HELD_BY_OPTIMIZER)
        if id(tensor) in asking.unheld:
            facts.add(SourceFact.UNKNOWN_TO_MODEL)
        if id(tensor) in self._required:
            facts.add(SourceFact.REQUIRED)
        return frozenset(facts)

    @cached_property
    def _required(self) -> frozenset[int]:
        """The parameters without whose gradient `DistributedDataParallel` stops."""
        if self._asking.kind != STEP or not any(s is Status.NONE for _, s in self._asking.sources):
            return frozenset()
        if not torch.distributed.is_available() or not torch.distributed.is_initialized():
            return frozenset()
        wrappers = [m for m in live_modules() if isinstance(m, nn.parallel.DistributedDataParallel)]
        strict = [m for m in wrappers if not m.find_unused_parameters]
        return frozenset(id(parameter) for wrapper in strict for parameter in registered(wrapper))

    def _stands_for_leaf(self, record: Record) -> bool:
        """Whether the program can reach none of the leaves that a result was made from, and it is none of a model's."""
        leaves = [found for found in ancestry([record]) if found.watched is not None]
        if not leaves or any(leaf.is_parameter for leaf in leaves):
            return False
        wanted = {id(leaf) for leaf in leaves}
        keys = [key for key, entry in self._recorder.table.items() if id(entry.record) in wanted]
        return not any(self._names.reaches(key) for key in keys)

    # Stand-ins

    def _stand_in(self, tensor: Tensor, record: Record, name: str, *, is_used: bool) -> StandIn | None:
        if not tensor.requires_grad and tensor.is_leaf:
            return self._misspelt(tensor)
        if not tensor.is_leaf:
            return self._parametrized(name)
        if self._asking.kind == STEP and not is_used and isinstance(tensor, Parameter):
            return self._replaced(tensor, record)
        return None

    def _misspelt(self, tensor: Tensor) -> StandIn | None:
        """An attribute nearly like `requires_grad` that the program has set on the tensor, where it did so."""
        written = [key for key in vars(tensor) if _is_alike(key)]
        for file in dict.fromkeys(code.co_filename for code, _ in self._asking.frames):
            for key in written:
                span = _assignment_to(file, key)
                if span is not None:
                    return key, span, "misspelt"
        return None

    def _parametrized(self, name: str) -> StandIn | None:
        """The parameter from which each read of a parametrized weight is computed."""
        owner, _, attribute = name.rpartition(".")
        for module in live_modules() if owner else ():
            parametrizations = module._modules.get("parametrizations")
            held = parametrizations._modules.get(attribute) if parametrizations is not None else None
            original = held._parameters.get("original") if held is not None else None
            if original is not None and self._names.of(module)[0] == owner:
                return f"{owner}.parametrizations.{attribute}.original", None, "parametrized"
        return None

    def _replaced(self, tensor: Tensor, record: Record) -> StandIn | None:
        """A parameter that the pass used and no optimizer holds, of the kind of one that belongs to no module any more."""
        if next(self._owners.chain(tensor), None) is not None:
            return None
        made = record.call.time if record.call is not None else 0
        for module in live_modules():
            for name, parameter in module._parameters.items():
                other = self._recorder.known(parameter) if parameter is not None else None
                if parameter is None or other is None or id(parameter) in self._asking.held or not other.used:
                    continue
                is_later = other.call is not None and other.call.time > made
                is_alike = parameter.dim() == tensor.dim() and id(other) in self._ancestry
                if is_later and is_alike and parameter.requires_grad:
                    return self._names.of(parameter)[0] or name, _parted_at(other, record), "replaced"
        return None

    # What a source was used for

    def _dropped(self, record: Record) -> tuple[Span | None, bool]:
        """Where the last op stands that computed something from a source before the question's last pass, and whether any did.

        What fills a parameter at its beginning, or shows its values to other processes, computes nothing from it.
        """
        until = self._asking.passes[-1].time if self._asking.passes else self._asking.time
        history = self._recorder.history
        last: Call | None = None
        is_used = bool(record.used) and history.has_overflown
        reached = {id(record)}
        for made in history.records():
            call = made.call
            if call is None or not any(id(edge[1]) in reached for edge in call.inputs):
                continue
            if is_used or call.is_recorded or call.pause is not None:
                is_used = True
                if call.time < until:
                    reached.add(id(made))
                    last = call
        return span_of(last.frames) if last is not None else None, is_used

    def _beside(self, tensor: Tensor) -> Span | None:
        """Where the parts next to one that no op ever read are used: of a container, where that is gone through."""
        for module, held in self._owners.chain(tensor):
            beside = [self._recorder.known(parameter) for parameter in neighbours(module, held)]
            used = [found.used for found in beside if found is not None and found.used and id(found) in self._ancestry]
            if used:
                name = self._owners.name_in_parent(module)
                return (_read_of(name, used[-1]) if name is not None else None) or span_of(used[-1])
        return None


def made_at(record: Record) -> Span | None:
    """Where a value was made; where it was only filled, a parameter say, its own beginning counts."""
    return span_of(record.call.frames) if record.call is not None else None


def span_of(frames: Frames) -> Span | None:
    """Where the innermost of some frames stands."""
    places = places_of(frames[:1])
    return places[0].span if places else None


def _parted_at(made: Record, before: Record) -> Span | None:
    """Where a value was made, in the innermost function that made another one somewhere else."""
    frames = made.call.frames if made.call is not None else ()
    others = set(before.call.frames) if before.call is not None else set()
    return span_of(tuple(frame for frame in frames if frame not in others)) or span_of(frames)


def _is_alike(key: str) -> bool:
    close = difflib.SequenceMatcher(None, key.lower(), "requires_grad").ratio()
    return key != "requires_grad" and close >= _ALIKE


@lru_cache(maxsize=64)
def _freezing_statements(path: str) -> tuple[Span, ...]:
    """Every place in a file that says `requires_grad = False` or `requires_grad_(False)`."""
    file = read(path)
    tree = file.tree if file is not None else None
    found: list[ast.AST] = []
    for part in ast.walk(tree) if tree is not None else ():
        if isinstance(part, ast.Assign) and _is_false(part.value):
            found += [t for t in part.targets if isinstance(t, ast.Attribute) and t.attr == "requires_grad"]
        elif isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr == "requires_grad_":
            found += [part] if part.args and _is_false(part.args[0]) else []
    return tuple(span_of_syntax(file, part, shown_path(path)) for part in found if file is not None)


def switched_off_at(frames: Frames) -> Span | None:
    """The one call in the program's files that sets the grad mode to False for good; None where there are several, or none."""
    found: list[Span] = []
    for path in dict.fromkeys(code.co_filename for code, _ in frames):
        file = read(path)
        tree = file.tree if file is not None else None
        for part in ast.walk(tree) if tree is not None else ():
            is_bare = isinstance(part, ast.Expr) and isinstance(part.value, ast.Call)
            call = part.value if is_bare else None  # type: ignore[attr-defined]
            if file is not None and call is not None and call.args and _is_false(call.args[0]):
                if getattr(call.func, "attr", getattr(call.func, "id", "")) == "set_grad_enabled":
                    found.append(span_of_syntax(file, call, shown_path(path)))
    return found[0] if len(found) == 1 else None


def _is_false(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and value.value is False


def _assignment_to(path: str, attribute: str) -> Span | None:
    file = read(path)
    tree = file.tree if file is not None else None
    for part in ast.walk(tree) if tree is not None else ():
        for target in part.targets if isinstance(part, ast.Assign) else ():
            if file is not None and isinstance(target, ast.Attribute) and target.attr == attribute:
                return span_of_syntax(file, target, shown_path(path))
    return None


def _read_of(attribute: str, frames: Frames) -> Span | None:
    """The last place, in the function that used a part of it, where an attribute of that name is read above that use."""
    use = span_of(frames)
    code = frames[0][0]
    file = read(code.co_filename)
    tree = file.tree if file is not None else None
    if file is None or tree is None or use is None:
        return None
    reads = [
        part
        for part in ast.walk(tree)
        if isinstance(part, ast.Attribute) and part.attr == attribute and isinstance(part.ctx, ast.Load)
    ]
    near = [part for part in reads if code.co_firstlineno <= part.lineno <= use.line]
    return span_of_syntax(file, max(near, key=_line), shown_path(code.co_filename)) if near else None


def _line(part: ast.Attribute) -> int:
    return part.lineno
