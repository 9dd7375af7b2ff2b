"""`gradwhy run`: a program under observation."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import rich_click as click

from gradwhy.cli.choices import causes_in, language_of_locale, language_option, project_settings, refusal
from gradwhy.cli.mending import NOTHING, Mending, Stopping, Wishes
from gradwhy.cli.telling import Teller
from gradwhy.flow import Severity, Text
from gradwhy.render.json import ReportError
from gradwhy.running import observing
from gradwhy.running.attach import Attachments
from gradwhy.running.program import INTERRUPTED, Outcome, Program, leave, wind_down
from gradwhy.running.program import run as run_program
from gradwhy.running.proving import Setting
from gradwhy.session import Session
from gradwhy.settings import FORMATS, Settings
from gradwhy.texts import render_text


class _RunCommand(click.RichCommand):
    """A command after whose program every argument is the program's own, whatever it looks like."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, self._split(args))

    def _split(self, args: list[str]) -> list[str]:
        """The arguments with `--` after `-m MODULE`, where ours end as they do for `python -m`."""
        takes_value = {name for p in self.params if isinstance(p, click.Option) and not p.is_flag for name in p.opts}
        position = 0
        while position < len(args) and args[position].startswith("-") and args[position] not in ("-", "--"):
            argument = args[position]
            position += 2 if argument in takes_value else 1
            if argument.startswith("-m") and position <= len(args):
                return [*args[:position], "--", *args[position:]]
        return args


@click.command(
    "run",
    cls=_RunCommand,
    context_settings={"allow_interspersed_args": False},
    options_metavar="[OPTIONS]",
)
@click.option("-m", "module", metavar="MODULE", help="Run a module, as `python -m MODULE` does, instead of a script.")
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    help="The form of the report in `--output`; `json` needs one.  [default: text]",
)
@click.option("--output", type=click.Path(path_type=Path), metavar="FILE", help="Write a report to FILE, too.")
@language_option
@click.option("--strict/--no-strict", default=None, help="Exit with 1 on a finding of severity error.")
@click.option("--select", multiple=True, metavar="CAUSES", help="Report these causes only, `a,b`; may be repeated.")
@click.option("--ignore", multiple=True, metavar="CAUSES", help="Do not report these causes; may be repeated.")
@click.option("--diff", is_flag=True, help="Show the fixes as one patch; change nothing.")
@click.option("--prove", is_flag=True, help="Run the changed program, too, and say what its gradients are.")
@click.option("--fix", is_flag=True, help="Write the fixes that are proved to the files.")
@click.option("--unsafe", is_flag=True, help="Take the fixes, too, that change more than what is recorded.")
@click.option(
    "--prove-timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=600.0,
    show_default=True,
    metavar="SECONDS",
    help="How long a changed program may take to its question.",
)
@click.option("--yes", is_flag=True, help="Prove a program, too, that writes files or connects to others.")
@click.option("--to-end", is_flag=True, help="With `--prove` or `--fix`, run past the first wrong answer.")
@click.argument("program", nargs=-1, type=click.UNPROCESSED, metavar="SCRIPT [ARGS]...")
def command(module: str | None, program: tuple[str, ...], lang: str | None, **given: Any) -> Run:
    """Run a Python program and explain every gradient that does not arrive.

    The program runs as `python SCRIPT ARGS` would run it: it prints, raises and exits as it does without gradwhy. What
    gradwhy finds goes to standard error as soon as it is known.
    """
    settings = project_settings(lang)
    language = lang or settings.lang or language_of_locale()
    if module is None and not program:
        raise refusal("no-program", language)
    return _Choice(settings, language, given).run(module, program)


@dataclass(frozen=True, slots=True)
class Run:
    """A program to run, and what was chosen for it."""

    program: Program
    language: str
    is_strict: bool
    select: frozenset[str]
    ignore: frozenset[str]
    form: str
    output: Path | None
    wishes: Wishes = NOTHING

    def __call__(self) -> int:
        """Run it, and give back the exit status that Python would."""
        teller = Teller(sys.stderr, self.language, form=self.form, output=self.output)
        stopping = Stopping(teller.changed)
        stopping.is_armed = self.wishes.runs_again and not self.wishes.runs_to_end
        session = Session(
            self.program.target,
            self.program.arguments,
            on_change=stopping,
            on_warning=teller.failed,
            on_notice=teller.notice,
            select=self.select,
            ignore=self.ignore,
            language=self.language,
            keeps_numbers=self.wishes.runs_again,
        )
        mending = None
        if self.wishes.is_any:
            mending = Mending(self.wishes, session, teller, Setting.now(self.program), self.language)
        attachments = Attachments(session, on_attached=session.attached)
        try:
            # A report of an earlier run must not be taken for this one's, however this one ends.
            teller.keep(session.report())
            attachments.install()
            observing.begin(attachments)
        except ReportError as wrong:
            return _refuse(wrong.text, self.language, status=2)
        except Exception as problem:
            return _refuse(Text("cli/not-observed", {"problem": repr(problem)}), self.language, status=3)
        outcome = run_program(self.program)
        stopping.is_armed = False
        has_error = False
        try:
            has_error = _finish(outcome, attachments, session, teller, mending)
        except KeyboardInterrupt as stop:
            # While a fix was proved: the changed program has been ended, and the files are as they were.
            outcome = Outcome(INTERRUPTED, stop)
        except Exception as problem:
            teller.failed(repr(problem))
        status = leave(outcome)
        return 1 if status == 0 and self.is_strict and has_error else status


def _finish(
    outcome: Outcome, attachments: Attachments, session: Session, teller: Teller, mending: Mending | None
) -> bool:
    """Ask and tell what only the program's end shows; whether a finding of this process is an error."""
    if outcome.has_started:
        wind_down()
    attachments.settle(outcome.problem)
    attachments.remove()
    observing.end(attachments)
    report = session.ended(outcome.status, outcome.problem)
    if not session.is_own_process:
        # The program forked, and the child ends here, too: the last line and the status are the parent's.
        return False
    if outcome.has_started:
        if mending is not None:
            report = mending.mend()
        teller.ended(report)
    return any(finding.severity is Severity.ERROR for finding in report.findings)


def _refuse(text: Text, language: str, *, status: int) -> int:
    click.echo(f"gradwhy: {render_text(text, language)}", err=True)
    return status


@dataclass(frozen=True, slots=True)
class _Choice:
    """What the command line says, and the project's settings where it says nothing."""

    settings: Settings
    language: str
    given: dict[str, Any]

    def run(self, module: str | None, program: tuple[str, ...]) -> Run:
        target, arguments = (program[0], program[1:]) if module is None else (module, program)
        return Run(
            program=Program(target, arguments, is_module=module is not None),
            language=self.language,
            is_strict=bool(self._first(self.given["strict"], self.settings.strict)),
            select=self._causes("select"),
            ignore=self._causes("ignore"),
            form=self._form(),
            output=self._output(),
            wishes=Wishes(
                shows=self.given["diff"],
                proves=self.given["prove"],
                writes=self.given["fix"],
                takes_unsafe=self.given["unsafe"],
                may_act_again=self.given["yes"],
                runs_to_end=self.given["to_end"],
                seconds=self.given["prove_timeout"],
            ),
        )

    def _first(self, chosen: Any, set_by_project: Any) -> Any:
        return set_by_project if chosen is None else chosen

    def _causes(self, name: str) -> frozenset[str]:
        lists = self.given[name] or getattr(self.settings, name) or ()
        return causes_in(lists, self.language)

    def _form(self) -> str:
        form: str = self._first(self.given["form"], self.settings.format) or "text"
        if form != "text" and self._first(self.given["output"], self.settings.output) is None:
            raise refusal("json-needs-output", self.language)
        return form

    def _output(self) -> Path | None:
        output: Path | None = self._first(self.given["output"], self.settings.output)
        if output is None:
            return None
        output = output.absolute()
        if output.is_dir():
            raise refusal("is-folder", self.language, file=str(output))
        if not output.parent.is_dir():
            raise refusal("no-folder", self.language, file=str(output), folder=str(output.parent))
        return output
