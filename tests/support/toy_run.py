"""`python toy_run.py ARGUMENTS`: the command line of gradwhy, which knows the framework `toy` and no other one."""

from __future__ import annotations

import sys

import gradwhy.diagnose
from gradwhy.backends import table
from gradwhy.backends.contract import Answer, Witness
from gradwhy.cli.main import main
from gradwhy.flow import (
    Asked,
    Cut,
    Finding,
    FlowGraph,
    Label,
    Place,
    Question,
    Severity,
    Source,
    Span,
    Status,
    Text,
)
from gradwhy.source.files import shown_path

CAUSES = {Status.NONE: "outside-tape", Status.ZERO: "saturated", Status.NAN: "numeric"}
SEVERITIES = {Status.NONE: Severity.ERROR, Status.ZERO: Severity.WARNING, Status.NAN: Severity.ERROR}


class Backend:
    framework = "toy"
    oldest = (0, 0)

    def version(self) -> str:
        return "1.0"

    def attach(self, witness: Witness) -> None:
        import toy

        def hook(statuses: tuple[str, ...]) -> None:
            caller = sys._getframe(2)
            place = Place(Span(shown_path(caller.f_code.co_filename), caller.f_lineno), caller.f_code.co_name)
            answers = tuple(Status(status) for status in statuses)
            asked = tuple(Asked(Source(f"w{n}"), None, status) for n, status in enumerate(answers))
            question = Question("toy.gradient", "toy", (place,), 1, "loss", (), asked)
            witness.answered(
                Answer(
                    "toy.gradient",
                    "toy",
                    place,
                    answers,
                    lambda has_graph: (question, FlowGraph() if has_graph else None),
                )
            )

        toy.hook = hook

    def detach(self) -> None:
        import toy

        toy.hook = None

    def settle(self, problem: BaseException | None) -> None:
        pass


def explain(question: Question, graph: FlowGraph, number: int, first_id: int = 0) -> list[Finding]:
    """One finding for each kind of answer that is no gradient."""
    found: list[Finding] = []
    for status, cause in CAUSES.items():
        sources = tuple(one.source for one in question.asked if one.status is status)
        if sources:
            names = {"sources": ", ".join(f"`{s.name}`" for s in sources), "more": 0, "count": len(sources)}
            place = question.span
            assert place is not None
            found.append(
                Finding(
                    id=first_id + len(found),
                    question=number,
                    cause=cause,
                    severity=SEVERITIES[status],
                    symptom=status,
                    sources=sources,
                    target="loss",
                    times=1,
                    place=place,
                    headline=Text(f"headline/{status.value}", names),
                    labels=(Label(place, Text("labels/asked")),),
                    cuts=(Cut(cause, place, "toy"),),
                    graph=graph,
                )
            )
    return found


def broken(*_: object) -> list[Finding]:
    raise RuntimeError("no explanation")


if __name__ == "__main__":
    table.FACTORIES.clear()  # type: ignore[attr-defined]
    table.FACTORIES["toy"] = "toy_run:Backend"  # type: ignore[index]
    is_broken = sys.argv[1:2] == ["--broken"]
    gradwhy.diagnose.explain = broken if is_broken else explain
    sys.exit(main(sys.argv[2 if is_broken else 1 :]))
