"""One observed run: what the program asked, what it got, and what there is to say about it."""

from __future__ import annotations

import os
import platform
import threading
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from gradwhy.backends.contract import Answer
from gradwhy.flow import (
    AskedQuestion,
    AskedSource,
    Finding,
    Fix,
    FlowGraph,
    Process,
    Question,
    Report,
    Severity,
    Source,
    Status,
    Text,
)
from gradwhy.running.occasions import Told, occasion_of
from gradwhy.running.quoting import is_silenced, quoted
from gradwhy.version import __version__

OWN_QUESTION = "gradwhy.why"
MOST_EXPLAINED = 16
"""How many different answers to one question are explained; a program asks with other sources each time."""
MOST_PATTERNS = 64
"""How many different answers to one question are counted apart before they are counted source by source."""

Statuses = tuple[Status, ...]
_Key = tuple[str, str, Hashable, int]


@dataclass(slots=True)
class _Asked:
    """One question, however often it is asked."""

    id: int
    question: Question
    times: int = 0
    patterns: dict[Statuses, int] = field(default_factory=dict)
    outcomes: list[dict[Status, int]] = field(default_factory=list)
    """What was counted source by source, for the patterns that are no longer kept."""
    first: Statuses = ()
    last: Statuses = ()
    first_wrong: dict[int, int] = field(default_factory=dict)
    told: set[tuple[int, Status]] = field(default_factory=set)
    explained: int = 0


@dataclass(slots=True)
class _Told:
    """A finding as it was made, which of its question's sources it is about, and whether the program ended by it."""

    finding: Finding
    asked: _Asked
    sources: tuple[int, ...]
    as_asked: Told
    is_fatal: bool = False


class Session:
    """The witness of one program. It may be asked from any thread, and by hooks that run inside its own work.

    `on_finding` gets every finding as soon as it is made, `on_change` the whole report after it, `on_warning` a line about
    what of ours failed, `on_notice` a text about what is not observed. `select` and `ignore` are causes.
    """

    def __init__(
        self,
        program: str,
        arguments: Sequence[str] = (),
        *,
        on_finding: Callable[[Finding], None] | None = None,
        on_change: Callable[[Report], None] | None = None,
        on_warning: Callable[[str], None] | None = None,
        on_notice: Callable[[Text], None] | None = None,
        select: Iterable[str] = (),
        ignore: Iterable[str] = (),
        language: str = "en",
        keeps_numbers: bool = False,
    ) -> None:
        self._keeps_numbers = keeps_numbers
        self._program = program
        self._arguments = tuple(arguments)
        self._on_finding = on_finding
        self._on_change = on_change
        self._on_warning = on_warning
        self._on_notice = on_notice
        self._select = frozenset(select)
        self._ignore = frozenset(ignore)
        self._language = language
        self._pid = os.getpid()
        self._lock = threading.RLock()
        self._busy = threading.local()
        self._asked: dict[_Key, _Asked] = {}
        self._last: _Asked | None = None
        self._told: list[_Told] = []
        self._warnings: dict[str, None] = {}
        self._frameworks: dict[str, str] = {}
        self._declined: set[str] = set()
        self._escaped: list[tuple[type, str]] = []
        self._exit_status: int | None = None
        self._changes = 0
        self._shown_changes = 0

    @property
    def is_own_process(self) -> bool:
        """False in a process that the program forked: the report and the last line are the parent's."""
        return os.getpid() == self._pid

    def answered(self, answer: Answer) -> None:
        """Count a question, and explain it where its answer is wrong in a way not seen before."""
        if getattr(self._busy, "is_on", False):
            # A question of our own work on a question.
            return
        self._busy.is_on = True
        try:
            with self._lock:
                findings = self._hear(answer)
                flows = self._flows(answer, findings)
            for finding in findings:
                self._guarded(self._on_finding, finding)
            if findings:
                self._changed()
            for why in flows:
                self._guarded(self._on_notice, why)
        finally:
            self._busy.is_on = False

    def escaped(self, problem: BaseException) -> None:
        """Remember an exception that left a question: the program may end by it."""
        with self._lock:
            # The exception itself would keep its frames, and all that they hold, alive.
            self._escaped = [*self._escaped[-7:], _words(problem)]

    def failed(self, what: str, problem: BaseException) -> None:
        """Warn, once for each, of what of ours has failed."""
        text = f"{what} failed: {type(problem).__name__}: {problem}".strip().rstrip(":")
        with self._lock:
            if text in self._warnings:
                return
            self._warnings[text] = None
        self._guarded(self._on_warning, text)
        self._changed()

    def declined(self, why: Text) -> None:
        """Tell, once for each, what the program uses and gradwhy does not observe."""
        line = " ".join([why.key, *(str(value) for value in why.values.values())])
        with self._lock:
            if line in self._declined:
                return
            self._declined.add(line)
        self._guarded(self._on_notice, why)

    def attached(self, framework: str, version: str) -> None:
        """Note that a framework of this version is being observed."""
        with self._lock:
            self._frameworks[framework] = version

    def ended(self, status: int, problem: BaseException | None = None) -> Report:
        """The whole report, now that the program has ended with this exit status, or by this exception."""
        with self._lock:
            self._exit_status = status
            if problem is not None:
                self._blame(problem)
        self._changed()
        return self.report()

    def report(self) -> Report:
        """All that is known by now."""
        with self._lock:
            findings = tuple(self._as_of_now(told) for told in self._told)
            return Report(
                gradwhy=__version__,
                python=platform.python_version(),
                program=self._program,
                frameworks=dict(self._frameworks),
                arguments=self._arguments,
                exit_status=self._exit_status,
                language=self._language,
                questions=tuple(_shown(asked) for asked in self._asked.values()),
                findings=findings,
                files=quoted(findings),
                process=Process(_rank(), self._pid),
                warnings=tuple(self._warnings),
            )

    def told(self) -> tuple[Told, ...]:
        """Every finding with the question that it answers."""
        with self._lock:
            return tuple(replace(told.as_asked, finding=self._as_of_now(told)) for told in self._told)

    def mend(self, fixes: Mapping[int, tuple[Fix, ...]]) -> Report:
        """The report, with these fixes at the findings of those ids."""
        with self._lock:
            for told in self._told:
                told.finding = replace(told.finding, fixes=fixes.get(told.finding.id, told.finding.fixes))
        return self.report()

    def _hear(self, answer: Answer) -> list[Finding]:
        key = (answer.kind, answer.framework, answer.key, len(answer.statuses))
        asked = self._asked.get(key)
        graph: FlowGraph | None = None
        question: Question | None = None
        if asked is None:
            is_wrong = any(status is not Status.OK for status in answer.statuses)
            question, graph = answer.build(is_wrong)
            asked = self._asked[key] = _Asked(len(self._asked), question)
        self._last = asked
        if not _count(asked, answer.statuses):
            return []
        fresh = {
            (index, status)
            for index, status in enumerate(answer.statuses)
            if status is not Status.OK and (index, status) not in asked.told
        }
        if not fresh or asked.explained >= MOST_EXPLAINED:
            return []
        if question is None:
            question, graph = answer.build(True)
        asked.told |= fresh
        asked.explained += 1
        return self._explain(asked, question, graph, {index for index, _ in fresh}, answer)

    def _flows(self, answer: Answer, findings: list[Finding]) -> list[Text]:
        """What to say to the user's own question where nothing stands in the gradient's way."""
        if answer.kind != OWN_QUESTION or findings or self._last is None:
            return []
        question = self._last.question
        values: dict[str, str | int | float] = {"target": question.target, "source": question.asked[0].source.name}
        return [] if self._has_told(self._last) else [Text("closing/flows", values)]

    def _has_told(self, asked: _Asked) -> bool:
        return any(told.asked is asked for told in self._told)

    def _explain(
        self, asked: _Asked, question: Question, graph: FlowGraph | None, fresh: set[int], answer: Answer
    ) -> list[Finding]:
        try:
            # Imported at the first wrong answer only: most runs have none.
            from gradwhy.diagnose import explain

            found = explain(question, graph if graph is not None else FlowGraph(), asked.id, len(self._told))
        except Exception as problem:
            self.failed("explaining a question", problem)
            return []
        findings = []
        for finding in found:
            sources = _indexes(finding.sources, question)
            if (sources and fresh.isdisjoint(sources)) or not self._is_wanted(finding):
                continue
            named = replace(finding, id=len(self._told), question=asked.id)
            told = _Told(named, asked, sources, self._as_asked(named, asked, question, answer))
            self._told.append(told)
            findings.append(self._as_of_now(told))
        return findings

    def _as_asked(self, finding: Finding, asked: _Asked, question: Question, answer: Answer) -> Told:
        """What it takes to ask the question again, and to compare the answers."""
        firsts = {key[:3]: other for key, other in reversed(self._asked.items()) if key[:3] != self._key_of(asked)[:3]}
        earlier = [other.question for other in firsts.values() if other.id < asked.id]
        occasion = occasion_of(question, earlier, asked.times)
        numbers = answer.numbers() if self._keeps_numbers and answer.numbers is not None else (None, ())
        return Told(finding, question, occasion, answer.statuses, *numbers)

    def _key_of(self, asked: _Asked) -> _Key:
        return next(key for key, other in self._asked.items() if other is asked)

    def _is_wanted(self, finding: Finding) -> bool:
        if finding.cause in self._ignore or (self._select and finding.cause not in self._select):
            return False
        return not is_silenced(finding)

    def _as_of_now(self, told: _Told) -> Finding:
        """The finding with how often it was met, and the severity that the run since then gives it."""
        counts = [_outcomes(told.asked, index) for index in told.sources]
        symptom = told.finding.symptom
        times = max((count.get(symptom, 0) for count in counts), default=told.finding.times)
        severity = told.finding.severity
        if told.is_fatal:
            severity = Severity.ERROR
        elif symptom in (Status.NONE, Status.ZERO) and self._comes_and_goes(told, counts):
            severity = Severity.NOTE
        return replace(told.finding, times=max(times, 1), severity=severity)

    def _comes_and_goes(self, told: _Told, counts: Sequence[Mapping[Status, int]]) -> bool:
        """Whether every source got its gradient in another repetition.

        One that got it until something cut it off, and never again, has lost it: unless the target only stopped using it.
        """
        is_left_out = told.finding.cause == "unused"
        for index, count in zip(told.sources, counts, strict=True):
            before = told.asked.first_wrong.get(index, 1) - 1
            if count.get(Status.OK, 0) <= (0 if is_left_out else before):
                return False
        return bool(counts)

    def _blame(self, problem: BaseException) -> None:
        """Mark the findings of the last question as what the program ended by, if it did."""
        last = self._last
        if last is None:
            return
        wrong = {index for index, status in enumerate(last.last) if status is not Status.OK}
        is_answer = any(_words(part) in self._escaped for part in _chain(problem))
        if not is_answer and not _follows(problem, last.question):
            return
        for told in self._told:
            # What is only worth a note is no reason for what happens next, unless it is what the framework complained of.
            if told.asked is last and (is_answer or told.finding.severity is not Severity.NOTE):
                told.is_fatal = not wrong.isdisjoint(told.sources)

    def _changed(self) -> None:
        if not self.is_own_process or self._on_change is None:
            return
        with self._lock:
            self._changes += 1
            change, report = self._changes, self.report()
        # Not under the lock: what listens may have to wait for the program. A later report may so be the first to arrive.
        if change > self._shown_changes:
            self._shown_changes = change
            self._guarded(self._on_change, report)

    def _guarded(self, listener: Callable[..., None] | None, told: object) -> None:
        """Tell a listener; what it raises must not reach the program. Stopping the program is no Exception, and passes."""
        if listener is None:
            return
        try:
            listener(told)
        except Exception as problem:
            with self._lock:
                self._warnings.setdefault(f"reporting failed: {type(problem).__name__}: {problem}")


def _count(asked: _Asked, statuses: Statuses) -> bool:
    """Whether the question is answered in a way that it has not been answered before."""
    asked.times += 1
    asked.first = asked.first or statuses
    asked.last = statuses
    if statuses in asked.patterns:
        asked.patterns[statuses] += 1
        return False
    if len(asked.patterns) >= MOST_PATTERNS:
        asked.outcomes = [_outcomes(asked, index) for index in range(len(statuses))]
        asked.patterns.clear()
    asked.patterns[statuses] = 1
    for index, status in enumerate(statuses):
        if status is not Status.OK:
            asked.first_wrong.setdefault(index, asked.times)
    return True


def _outcomes(asked: _Asked, index: int) -> dict[Status, int]:
    """How often one source of a question got which answer."""
    counts = dict(asked.outcomes[index]) if asked.outcomes else {}
    for statuses, times in asked.patterns.items():
        counts[statuses[index]] = counts.get(statuses[index], 0) + times
    return counts


def _shown(asked: _Asked) -> AskedQuestion:
    """The question as a report shows it."""
    question = asked.question
    sources = tuple(
        AskedSource(
            name=one.source.name,
            aliases=one.source.aliases,
            class_name=one.source.class_name,
            shape=one.source.shape,
            status=asked.first[index],
            outcomes={status.value: count for status, count in _outcomes(asked, index).items()},
            first_wrong=asked.first_wrong.get(index),
        )
        for index, one in enumerate(question.asked[: len(asked.first)])
    )
    return AskedQuestion(
        asked.id, question.kind, question.framework, question.span, question.target, asked.times, sources
    )


def _indexes(sources: tuple[Source, ...], question: Question) -> tuple[int, ...]:
    """Which of the question's sources a finding is about."""
    return tuple(index for index, one in enumerate(question.asked) if one.source in sources)


def _follows(problem: BaseException, question: Question) -> bool:
    """Whether the exception came out of what the question's function, or one that called it, did next.

    A file that is not there, a module that cannot be imported, has nothing to do with a gradient.
    """
    if isinstance(problem, (OSError, ImportError, MemoryError)) or not isinstance(problem, Exception):
        return False
    functions = {place.function for place in question.places}
    frames = []
    place = problem.__traceback__
    while place is not None:
        frames.append(place.tb_frame.f_code.co_qualname)
        place = place.tb_next
    return not functions.isdisjoint(frames)


def _words(problem: BaseException) -> tuple[type, str]:
    try:
        return type(problem), str(problem)
    except Exception:
        return type(problem), ""


def _chain(problem: BaseException) -> Iterable[BaseException]:
    """The exception and those that it hangs on."""
    waiting, seen = [problem], set()
    while waiting:
        current = waiting.pop()
        if id(current) not in seen:
            seen.add(id(current))
            yield current
            waiting += [part for part in (current.__cause__, current.__context__) if part is not None]


def _rank() -> int | None:
    """The rank that a launcher gave this process."""
    given = next(
        (os.environ[name] for name in ("RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID") if name in os.environ), ""
    )
    return int(given) if given.isdecimal() else None
