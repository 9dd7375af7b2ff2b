"""The child process that runs a changed program up to one question, and tells what was answered."""

from __future__ import annotations

import base64
import importlib.machinery
import json
import linecache
import os
import sys
from collections.abc import Hashable, Mapping
from dataclasses import asdict
from typing import Any

from gradwhy.backends.contract import Answer
from gradwhy.flow import Text
from gradwhy.running import observing
from gradwhy.running.attach import Attachments
from gradwhy.running.program import Program
from gradwhy.running.program import run as run_program
from gradwhy.source import files


class Rehearsal:
    """The witness that waits for one question, writes its answer to `report`, and ends the process there and then."""

    def __init__(self, occasion: Mapping[str, Any], report: int) -> None:
        self._occasion = occasion
        self._report = report
        self._pid = os.getpid()
        self._times: dict[Hashable, int] = {}
        self._mine: dict[Hashable, bool] = {}
        self._met = 0

    def answered(self, answer: Answer) -> None:
        """Count the question, and stop at the awaited one."""
        key = (answer.kind, answer.framework, answer.key)
        self._times[key] = self._times.get(key, 0) + 1
        if key not in self._mine:
            self._mine[key] = self._is_awaited(answer)
        if self._mine[key] and self._times[key] == self._occasion["repetition"] and os.getpid() == self._pid:
            self._tell(answer)

    def escaped(self, problem: BaseException) -> None:
        """An exception that leaves a question is an answer that has been heard already."""

    def failed(self, what: str, problem: BaseException) -> None:
        """What of ours fails here fails in the run that is rehearsed, too, and is told there."""

    def declined(self, why: Text) -> None:
        """Told in the run that is rehearsed, too."""

    def ended(self, problem: BaseException | None) -> None:
        """The program is over, and the question was not asked."""
        words = f"{type(problem).__name__}: {problem}".splitlines()[0][:200] if problem is not None else None
        self._write({"problem": words})

    def _is_awaited(self, answer: Answer) -> bool:
        if answer.kind != self._occasion["kind"]:
            return False
        question, _ = answer.build(False)
        place = question.places[0] if question.places else None
        function, file = (place.function, place.span.file) if place is not None else ("", "")
        if (function, file) != (self._occasion["function"], self._occasion["file"]):
            return False
        self._met += 1
        return bool(self._met - 1 == self._occasion["ordinal"])

    def _tell(self, answer: Answer) -> None:
        question, _ = answer.build(False)
        target, gradients = answer.numbers() if answer.numbers is not None else (None, ())
        self._write(
            {
                "names": [asked.source.name for asked in question.asked],
                "statuses": [status.value for status in answer.statuses],
                "target": asdict(target) if target is not None else None,
                "gradients": [asdict(held) if held is not None else None for held in gradients],
            }
        )
        # Nothing of the program may run on: no handler, no `finally`, no other thread.
        os._exit(0)

    def _write(self, told: object) -> None:
        with os.fdopen(os.dup(self._report), "w", encoding="utf-8") as stream:
            json.dump(told, stream)


def stand_in(texts: Mapping[str, bytes]) -> None:
    """Have Python's import machinery, and what reads source by line, take these texts for the files of those real paths."""
    loader: Any = importlib.machinery.SourceFileLoader
    read, look = loader.get_data, loader.path_stats

    def get_data(self: Any, path: str) -> bytes:
        given = texts.get(os.path.realpath(path))
        return given if given is not None else read(self, path)

    def path_stats(self: Any, path: str) -> Any:
        if os.path.realpath(path) in texts:
            # Without a date no compiled file is read or written.
            raise OSError
        return look(self, path)

    loader.get_data, loader.path_stats = get_data, path_stats
    entries: dict[str, tuple[int, None, list[str], str]] = {}
    for path, content in texts.items():
        files.supply(path, content)
        source = files.read(path)
        if source is not None:
            # An entry without a date is never compared with the disk.
            entries[path] = len(content), None, [f"{line}\n" for line in source.lines], path
    update = linecache.updatecache

    def updatecache(filename: str, module_globals: dict[str, Any] | None = None) -> list[str]:
        # AutoGraph has the text of a function read anew, date or not: it must see the text that runs.
        if filename not in entries:
            return update(filename, module_globals)
        linecache.cache[filename] = entries[filename]
        return entries[filename][2]

    linecache.updatecache = updatecache


def main(report: int) -> int:
    """Run what the instructions on standard input say; the answer goes to the descriptor `report`."""
    os.set_inheritable(report, False)
    given = json.loads(sys.stdin.buffer.read())
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    sys.stdin = open(0, closefd=False, encoding="utf-8")
    texts = {os.path.realpath(path): base64.b64decode(text) for path, text in given["texts"].items()}
    stand_in({path: text for held, text in texts.items() for path in {held, *_spellings(held, given["texts"])}})
    witness = Rehearsal(given["occasion"], report)
    attachments = Attachments(witness)
    attachments.install()
    observing.begin(attachments)
    program = Program(given["target"], tuple(given["arguments"]), is_module=given["is_module"])
    outcome = run_program(program, texts)
    attachments.settle(outcome.problem)
    witness.ended(outcome.problem)
    sys.stdout.flush()
    os._exit(0)


def _spellings(real: str, given: Mapping[str, str]) -> set[str]:
    return {path for path in given if os.path.realpath(path) == real}
