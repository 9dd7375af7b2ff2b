"""Proving chosen fixes by running the program with them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from gradwhy.fix.choose import Choice, LeftOut
from gradwhy.fix.locality import is_local
from gradwhy.fix.patch import changed_by
from gradwhy.fix.verdict import AnswerSeen, is_same, judge
from gradwhy.flow import Applicability, Edit, Proof, SourceFact, Status, Text
from gradwhy.running.occasions import Occasion, Told
from gradwhy.source.files import absolute_path
from gradwhy.texts import render_text

Rehearse = Callable[[Mapping[str, bytes], Occasion], AnswerSeen | Text]
"""Runs the program with these texts, by path, up to an occasion."""

# Fixes after which the sources that cannot have a gradient are not asked about any more.
_DROPPING = frozenset({"fixes/ask-trainable"})
SHOWN_AS_UNASKED = frozenset({SourceFact.UNKNOWN_TO_MODEL, SourceFact.MADE_IN_CALL})


@dataclass(frozen=True, slots=True)
class Proved:
    """A change that was proved, and what was seen for each finding that it mends, by the finding's id."""

    choice: Choice
    proofs: Mapping[int, Proof]


class Trials:
    """Proves changes against the run that found what they mend."""

    def __init__(
        self,
        told: Sequence[Told],
        content: Callable[[str], bytes | None],
        rehearse: Rehearse,
        language: str,
    ) -> None:
        self._told = {each.finding.id: each for each in told}
        self._content = content
        self._rehearse = rehearse
        self._language = language
        self._plain: dict[Occasion, AnswerSeen | Text] = {}

    def prove(self, choices: Sequence[Choice]) -> tuple[list[Proved], list[LeftOut]]:
        """The changes that are proved together, and the others with what speaks against them."""
        together, refused = self._try(choices)
        if not refused or len(choices) < 2:
            return together, refused
        alone: list[Proved] = []
        left_out: list[LeftOut] = []
        for choice in choices:
            proved, missing = self._try([choice])
            alone += proved
            left_out += missing
        # Each holds by itself, and not with the others: one now, the others in the next run.
        left_out += [LeftOut(each.choice.proposal, Text("fixes/reason/overlaps")) for each in alone[1:]]
        return alone[:1], left_out

    def texts(self, edits: Sequence[Edit]) -> dict[str, bytes]:
        """The changed files by their absolute paths. KeyError where one is not what the program read any more."""
        changed: dict[str, bytes] = {}
        for file in dict.fromkeys(edit.file for edit in edits):
            content = self._content(file)
            if content is None:
                raise KeyError(file)
            changed[absolute_path(file)] = changed_by(content, [edit for edit in edits if edit.file == file])
        return changed

    def _try(self, choices: Sequence[Choice]) -> tuple[list[Proved], list[LeftOut]]:
        edits = [edit for choice in choices for edit in choice.edits]
        try:
            texts = self.texts(edits)
        except KeyError as changed:
            reason = Text("fixes/reason/changed", {"file": str(changed.args[0])})
            return [], [LeftOut(choice.proposal, reason) for choice in choices]
        if not self._is_local(edits, texts):
            return [], [LeftOut(choice.proposal, Text("fixes/reason/not-local")) for choice in choices]
        seen: dict[Occasion, AnswerSeen | Text] = {}
        proved: list[Proved] = []
        refused: list[LeftOut] = []
        for choice in choices:
            proofs: dict[int, Proof] = {}
            for finding in choice.findings:
                told = self._told[finding.id]
                occasion = _awaited(told)
                if occasion not in seen:
                    seen[occasion] = self._rehearse(texts, occasion)
                verdict = self._judged(choice, told, occasion, seen[occasion])
                if isinstance(verdict, Text):
                    refused.append(LeftOut(choice.proposal, self._not_proved(verdict)))
                    break
                proofs[finding.id] = verdict
            else:
                proved.append(Proved(choice, proofs))
        return proved, refused

    def _is_local(self, edits: Sequence[Edit], texts: Mapping[str, bytes]) -> bool:
        for file in dict.fromkeys(edit.file for edit in edits):
            before = self._content(file)
            mine = [edit for edit in edits if edit.file == file]
            if before is None or not is_local(before, texts[absolute_path(file)], mine):
                return False
        return True

    def _judged(self, choice: Choice, told: Told, occasion: Occasion, after: AnswerSeen | Text) -> Proof | Text:
        if isinstance(after, Text):
            return after
        names = tuple(asked.source.name for asked in told.question.asked)
        before = AnswerSeen(names, told.statuses, told.gradients, told.target)
        if _is_unasked(told):
            after = _named_as(after, names, str(choice.proposal.title.values.get("name", "")))
        same = is_same(before.target, after.target)
        if same is False and self._differs_anyway(before, occasion):
            same = None
        return judge(
            before,
            after,
            wanted=frozenset(source.name for source in told.finding.sources),
            target=told.question.target,
            is_safe=choice.proposal.applicability is Applicability.SAFE,
            may_drop=choice.proposal.title.key in _DROPPING,
            is_same_target=same,
        )

    def _differs_anyway(self, before: AnswerSeen, occasion: Occasion) -> bool:
        """Whether the target of two runs of the unchanged program differs, so that nothing can be said of a change."""
        if occasion not in self._plain:
            self._plain[occasion] = self._rehearse({}, occasion)
        plain = self._plain[occasion]
        return not isinstance(plain, AnswerSeen) or is_same(before.target, plain.target) is not True

    def _not_proved(self, why: Text) -> Text:
        if why.key in ("fixes/reason/time-limit", "fixes/reason/not-proved"):
            return why
        return Text("fixes/reason/not-proved", {"problem": render_text(why, self._language)})


def _awaited(told: Told) -> Occasion:
    """Where the changed program answers: of what was never asked about, at the first gradient that the function asks for."""
    if _is_unasked(told):
        return replace(told.occasion, kind="tape.gradient", ordinal=0, repetition=1)
    return told.occasion


def _is_unasked(told: Told) -> bool:
    """Whether there was no answer but what the program did: a watch was refused, a variable left out of its model."""
    failure = told.question.failure
    is_refused = failure is not None and failure.kind == "not-watchable"
    return is_refused or any(not SHOWN_AS_UNASKED.isdisjoint(asked.facts) for asked in told.question.asked)


def _named_as(answer: AnswerSeen, names: tuple[str, ...], made_as: str) -> AnswerSeen:
    """The part of an answer that is about the sources of these names.

    A layer that was found in no model is named by its path, `net/head/kernel`; made once as `self.head`, it has a name.
    """
    owner = made_as.rpartition(".")[2]
    places: dict[str, int] = {}
    for name in names:
        leaf = name.rpartition("/")[2]
        for number, shown in enumerate(answer.names):
            if shown == name or (owner and shown.endswith(f"{owner}.{leaf}")):
                places.setdefault(name, number)
    numbers = list(places.values())
    statuses: tuple[Status, ...] = tuple(answer.statuses[number] for number in numbers)
    gradients = tuple(answer.gradients[number] if number < len(answer.gradients) else None for number in numbers)
    return AnswerSeen(tuple(places), statuses, gradients, answer.target)
