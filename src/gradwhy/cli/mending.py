"""What a run does with its fixes: show them, prove them, write them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gradwhy.cli.telling import Teller
from gradwhy.fix.verdict import AnswerSeen
from gradwhy.flow import Applicability, Fix, Proof, Report, Severity, Text
from gradwhy.running.occasions import Occasion, Told
from gradwhy.running.outside import Outside
from gradwhy.running.proving import Setting, rehearse
from gradwhy.session import Session
from gradwhy.source import files
from gradwhy.texts import render_text, say

if TYPE_CHECKING:
    from gradwhy.fix.choose import Choice, LeftOut
    from gradwhy.running.trials import Proved


class Enough(SystemExit):
    """Ends a program at its first wrong answer: the rest of it says nothing about the fix."""

    def __init__(self) -> None:
        super().__init__(0)


@dataclass(frozen=True, slots=True)
class Wishes:
    """What was chosen on the command line."""

    shows: bool = False
    proves: bool = False
    writes: bool = False
    takes_unsafe: bool = False
    may_act_again: bool = False
    runs_to_end: bool = False
    seconds: float = 600.0

    @property
    def is_any(self) -> bool:
        return self.shows or self.proves or self.writes

    @property
    def runs_again(self) -> bool:
        return self.proves or self.writes


NOTHING = Wishes()


class Stopping:
    """Ends a running program once a report holds a finding that is worth a fix."""

    def __init__(self, changed: Callable[[Report], None]) -> None:
        self._changed = changed
        self.is_armed = True

    def __call__(self, report: Report) -> None:
        self._changed(report)
        if self.is_armed and any(finding.severity is not Severity.NOTE for finding in report.findings):
            self.is_armed = False
            raise Enough


class Mending:
    """The fixes of one run."""

    def __init__(self, wishes: Wishes, session: Session, teller: Teller, setting: Setting, language: str) -> None:
        self._wishes, self._session, self._teller = wishes, session, teller
        self._setting, self._language = setting, language
        self._outside = Outside() if wishes.runs_again and not wishes.may_act_again else None

    def mend(self) -> Report:
        """Do what was wished for, now that the program has ended; the report with the fixes."""
        # LibCST takes longer to import than all that is ours.
        from gradwhy.fix.choose import choose

        act = None
        if self._outside is not None:
            self._outside.close()
            act = self._outside.act
        told = self._session.told()
        choices, left_out = choose(
            ((each.finding, each.question) for each in told), content_of, takes_unsafe=self._wishes.takes_unsafe
        )
        proved: list[Proved] = []
        if self._wishes.runs_again and choices:
            proved, refused = self._prove(told, choices, act)
            left_out = [*refused, *left_out]
            choices = [each.choice for each in proved]
        shown = patch_of(choices)
        written: list[str] = []
        if self._wishes.writes and proved:
            written, problem = write_all(choices)
            left_out += problem
        report = self._session.mend(_fixes(choices, proved))
        self._teller.fixes(report, rows_of(choices, proved, left_out, written, shown, self._language))
        return report

    def _prove(
        self, told: Sequence[Told], choices: Sequence[Choice], act: Text | None
    ) -> tuple[list[Proved], list[LeftOut]]:
        from gradwhy.fix.choose import LeftOut
        from gradwhy.running.trials import Trials

        if act is not None:
            reason = Text("fixes/reason/acts-outside", {"act": render_text(act, self._language)})
            return [], [LeftOut(choice.proposal, reason) for choice in choices]
        return Trials(told, content_of, self._rehearse, self._language).prove(choices)

    def _rehearse(self, texts: Mapping[str, bytes], occasion: Occasion) -> AnswerSeen | Text:
        return rehearse(self._setting, texts, occasion, self._wishes.seconds)


def content_of(file: str) -> bytes | None:
    """A file's bytes as the program read them; None where the disk holds others by now."""
    from gradwhy.fix.write import read_content

    known = files.read(file)
    return None if known is None else read_content(known.path, known.sha256)


def patch_of(choices: Iterable[Choice]) -> str:
    """All the changes as one patch."""
    from gradwhy.fix.patch import patch

    edits = [edit for choice in choices for edit in choice.edits]
    contents = {edit.file: content_of(edit.file) or b"" for edit in edits}
    return patch(contents, sorted(edits, key=lambda edit: (edit.file, edit.span.line)))


def write_all(choices: Sequence[Choice]) -> tuple[list[str], list[LeftOut]]:
    """Write the changed files; the names of those written, and the changes that could not be, with the reason."""
    from gradwhy.fix.choose import LeftOut
    from gradwhy.fix.patch import changed_by
    from gradwhy.fix.write import WriteError, write_content

    written: list[str] = []
    left_out: list[LeftOut] = []
    for file in dict.fromkeys(edit.file for choice in choices for edit in choice.edits):
        before = content_of(file)
        mine = [choice for choice in choices if any(edit.file == file for edit in choice.edits)]
        try:
            if before is None:
                raise WriteError(Text("fixes/reason/changed", {"file": file}))
            after = changed_by(before, [edit for choice in mine for edit in choice.edits if edit.file == file])
            write_content(files.absolute_path(file), file, before, after)
            written.append(file)
        except WriteError as wrong:
            left_out += [LeftOut(choice.proposal, wrong.reason) for choice in mine]
    return written, left_out


def rows_of(
    choices: Sequence[Choice],
    proved: Sequence[Proved],
    left_out: Sequence[LeftOut],
    written: Sequence[str],
    patch: str,
    language: str,
) -> list[str]:
    """What is said of the fixes, line by line, and the patch."""
    proofs = {id(each.choice): each.proofs for each in proved}
    rows: list[str] = []
    for choice in choices:
        grade = choice.proposal.applicability
        key = "fixes/safe" if grade is Applicability.SAFE else "fixes/unsafe"
        rows.append(say(key, language) + render_text(choice.proposal.title, language))
        rows += _proof_rows(choice, proofs.get(id(choice), {}), language)
    for each in left_out:
        values = {"title": render_text(each.proposal.title, language), "reason": render_text(each.reason, language)}
        rows.append(say("fixes/left-out", language, **values))
    if not choices and not left_out:
        rows.append(say("fixes/none", language))
    rows += patch.removesuffix("\n").split("\n") if patch else []
    return rows + [say("fixes/patched", language, file=file) for file in written]


def _proof_rows(choice: Choice, proofs: Mapping[int, Proof], language: str) -> list[str]:
    rows: dict[str, None] = {}
    for finding in choice.findings:
        proof = proofs.get(finding.id)
        if proof is None:
            continue
        for source in finding.sources:
            seen = proof.sources.get(source.name)
            if seen is None:
                rows[say("fixes/proved-dropped", language, name=source.name)] = None
            elif seen.norm is None:
                rows[say("fixes/proved-ok", language, name=source.name)] = None
            else:
                rows[say("fixes/proved-norm", language, name=source.name, norm=seen.norm)] = None
        same = proof.target_unchanged
        key = "fixes/target-unknown" if same is None else "fixes/target-same" if same else "fixes/target-other"
        rows[say(key, language, target=finding.target)] = None
    return [f"  {row}" for row in rows]


def _fixes(choices: Sequence[Choice], proved: Sequence[Proved]) -> dict[int, tuple[Fix, ...]]:
    """The fixes of each finding, by its id."""
    proofs = {id(each.choice): each.proofs for each in proved}
    found: dict[int, tuple[Fix, ...]] = {}
    for choice in choices:
        proposal = choice.proposal
        diff = patch_of([choice])
        for finding in choice.findings:
            proof = proofs.get(id(choice), {}).get(finding.id)
            found[finding.id] = (Fix(proposal.title, proposal.applicability, proposal.edits, diff, proof),)
    return found
