"""Which changes to make: one for each finding, none that would cross another."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from gradwhy.fix.proposals import proposals
from gradwhy.fix.situation import Proposal, Situation
from gradwhy.flow import Applicability, Edit, Finding, Question, Text
from gradwhy.source.edits import line_range
from gradwhy.source.positions import is_user_file


@dataclass(frozen=True, slots=True)
class Choice:
    """A change that is to be made, and the findings that it mends."""

    proposal: Proposal
    findings: tuple[Finding, ...]

    @property
    def edits(self) -> tuple[Edit, ...]:
        return self.proposal.edits


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A change that is not made, and the reason."""

    proposal: Proposal
    reason: Text


def choose(
    told: Iterable[tuple[Finding, Question]], content: Callable[[str], bytes | None], *, takes_unsafe: bool
) -> tuple[list[Choice], list[LeftOut]]:
    """The changes for these findings, in their order, and those that are left out."""
    chosen: dict[tuple[Edit, ...], Choice] = {}
    left_out: dict[tuple[Edit, ...], LeftOut] = {}
    for finding, question in told:
        found, _ = proposals(Situation(finding, question, content))
        for proposal in found:
            same = chosen.get(proposal.edits)
            if same is not None:
                chosen[proposal.edits] = Choice(same.proposal, (*same.findings, finding))
            elif not all(is_user_file(edit.file) for edit in proposal.edits):
                continue
            elif proposal.applicability is not Applicability.SAFE and not takes_unsafe:
                left_out.setdefault(proposal.edits, LeftOut(proposal, Text("fixes/reason/unsafe")))
            elif any(crosses(proposal.edits, other) for other in chosen):
                left_out.setdefault(proposal.edits, LeftOut(proposal, Text("fixes/reason/overlaps")))
            else:
                chosen[proposal.edits] = Choice(proposal, (finding,))
    return list(chosen.values()), list(left_out.values())


def crosses(some: Iterable[Edit], others: Iterable[Edit]) -> bool:
    """Whether two changes touch the same lines, or lines next to each other."""
    ranges = [(edit.file, *line_range(edit)) for edit in others]
    for edit in some:
        start, end = line_range(edit)
        if any(
            file == edit.file and start <= other_end and other_start <= end for file, other_start, other_end in ranges
        ):
            return True
    return False
