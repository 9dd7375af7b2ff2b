"""`gradwhy run`: what it takes, what it prints, what it keeps, and how it ends."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gradwhy.cli.main import main
from gradwhy.cli.run import Run, command
from gradwhy.render.json import read_report
from gradwhy.running.attach import Attachments
from gradwhy.running.program import Program

SUPPORT = Path(__file__).parents[1] / "support"
UNSET = ("LC_ALL", "LC_MESSAGES", "LANG", "NO_COLOR", "RANK", "SLURM_PROCID")


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in UNSET:
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def parsed(*arguments: str) -> Run:
    run = command.main(list(arguments), prog_name="run", standalone_mode=False)
    assert isinstance(run, Run)
    return run


def _environment() -> dict[str, str]:
    """This process's own, in which the framework `toy` can be imported."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [str(SUPPORT), os.environ.get("PYTHONPATH")]))}


def started(*arguments: str, **environment: str) -> subprocess.Popen[str]:
    """The command line with the framework `toy`, started in the working folder."""
    return subprocess.Popen(
        [sys.executable, str(SUPPORT / "toy_run.py"), *arguments],
        env={**_environment(), "PYTHONIOENCODING": "utf-8", **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        # What runs in the background of a shell ignores it, and so would its children.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def observed(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    process = started(*arguments, **environment)
    out, err = process.communicate(timeout=60)
    return subprocess.CompletedProcess(arguments, process.returncode, out, err)


def program(text: str, name: str = "train.py") -> str:
    Path(name).write_text(f"import toy\n{text}\n", encoding="utf-8")
    return name


# --- what stands on the command line


@pytest.mark.parametrize(
    "arguments",
    [
        ["train.py"],
        ["train.py", "--lang", "zh", "--strict", "--help", "-m", "x"],
        ["train.py", "--", "x", "--"],
        ["train.py", "", " ", "*.py", "~"],
    ],
)
def test_arguments_after_the_script_are_the_programs_own(arguments: list[str]) -> None:
    run = parsed("--lang", "en", *arguments)
    assert run.program == Program(arguments[0], tuple(arguments[1:]))
    assert (run.language, run.is_strict) == ("en", False)
    assert parsed("--lang", "en", "--", *arguments).program == run.program


@pytest.mark.parametrize("arguments", [[], ["--strict", "--lang", "zh"], ["--", "x"], ["-m", "other"], ["--help"]])
def test_arguments_after_the_module_are_the_programs_own(arguments: list[str]) -> None:
    for written in (["-m", "package.train"], ["-mpackage.train"]):
        run = parsed("--lang", "en", *written, *arguments)
        assert run.program == Program("package.train", tuple(arguments), is_module=True)
        assert (run.language, run.is_strict) == ("en", False)


def test_options_before_the_program_are_ours_whatever_their_values_look_like() -> None:
    run = parsed("--output", "-m", "--strict", "train.py", "-m")
    assert run.output is not None and run.output.name == "-m"
    assert run.program == Program("train.py", ("-m",))
    assert parsed("--output=-m", "-m", "x").program == Program("x", (), is_module=True)
    assert parsed("-").program == Program("-")


def test_causes_are_lists_with_commas_and_may_be_repeated() -> None:
    run = parsed("--select", "frozen, unused", "--select=paused", "--ignore", "unknown,", "train.py")
    assert run.select == {"frozen", "unused", "paused"}
    assert run.ignore == {"unknown"}


def test_the_command_line_wins_over_the_project(folder: Path) -> None:
    (folder / "pyproject.toml").write_text(
        '[tool.gradwhy]\nlang = "zh"\nstrict = true\nselect = ["frozen"]\nignore = ["unused"]\n'
        'format = "json"\noutput = "kept.json"',
        encoding="utf-8",
    )
    run = parsed("train.py")
    assert (run.language, run.is_strict, run.select, run.ignore) == ("zh", True, {"frozen"}, {"unused"})
    assert (run.form, run.output) == ("json", folder / "kept.json")
    run = parsed(
        "--lang=en",
        "--no-strict",
        "--select=paused",
        "--ignore=detached",
        "--format=text",
        "--output=x.txt",
        "train.py",
    )
    assert (run.language, run.is_strict, run.select, run.ignore) == ("en", False, {"paused"}, {"detached"})
    assert (run.form, run.output) == ("text", folder / "x.txt")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "name a script to run, or a module with `-m`"),
        (["--strict"], "name a script to run"),
        (["-m"], "option '-m' requires an argument"),
        (["--format", "json", "train.py"], "`--format json` needs `--output FILE`"),
        (["--format", "html", "train.py"], "'html' is not one of 'text', 'json'"),
        (["--select", "frozen,nonsense", "train.py"], "there is no cause `nonsense`"),
        (["--ignore", "frozn", "train.py"], "did you mean `frozen`?"),
        (["--output", "gone/r.json", "train.py"], "there is no folder"),
        (["--output", ".", "train.py"], "it is a folder"),
        (["--repair", "train.py"], "no such option"),
    ],
)
def test_a_wrong_request_is_one_line_and_status_two_and_runs_nothing(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("train.py").write_text("raise AssertionError", encoding="utf-8")
    assert main(["run", *arguments]) == 2
    shown = capsys.readouterr()
    assert message in shown.err
    assert shown.err.startswith("gradwhy: ") and shown.err.count("\n") == 1 and shown.out == ""


def test_a_wrong_request_is_told_in_the_users_language(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--lang", "zh", "--format", "json", "train.py"]) == 2
    assert capsys.readouterr().err == "gradwhy: `--format json` 需要 `--output FILE`：标准输出要留给程序\n"


# --- what is printed


def test_a_finding_is_printed_to_standard_error_and_standard_output_stays_the_programs() -> None:
    done = observed("run", program("print('before')\ntoy.gradient('none', 'ok')\nprint('after')"))
    assert done.returncode == 0
    assert done.stdout == "before\nafter\n"
    assert done.stderr == (
        "\n"
        "error[outside-tape]: no gradient reaches `w0`\n"
        "  --> train.py:3\n"
        "   |\n"
        " 3 | toy.gradient('none', 'ok')\n"
        "   | ^^^^^^^^^^^^^^^^^^^^^^^^^^ the gradient is asked for here\n"
        "   = learn more: gradwhy explain outside-tape\n"
        "\n"
        "gradwhy: 1 question, 2 sources, 1 finding\n"
    )


def test_a_finding_is_printed_when_it_is_made_and_only_once() -> None:
    text = "import sys\nfor step in range(3):\n    toy.gradient('none')\n    print(f'step {step}', file=sys.stderr)"
    err = observed("run", program(text)).stderr
    assert err.count("error[outside-tape]") == 1
    assert err.index("error[outside-tape]") < err.index("step 0")
    assert err.endswith("step 2\n\ngradwhy: 1 question, 1 source, 1 finding\n")


def test_a_healthy_program_gets_one_line() -> None:
    assert observed("run", program("toy.gradient('ok')")).stderr == "gradwhy: 1 question, 1 source, 0 findings\n"
    assert observed("run", program("")).stderr == "gradwhy: no gradient was asked for\n"
    Path("plain.py").touch()
    err = observed("run", "plain.py").stderr
    assert err == ("gradwhy: no gradient was asked for; the program imported none of TensorFlow, PyTorch and JAX\n")


def test_the_text_is_in_the_language_of_the_locale() -> None:
    err = observed("run", program("toy.gradient('none')"), LANG="zh_CN.UTF-8").stderr
    assert "错误[outside-tape]：梯度到不了 `w0`\n" in err
    assert err.endswith("gradwhy：1 次梯度请求，1 个源，1 条诊断\n")


def test_causes_can_be_selected_and_ignored() -> None:
    name = program("toy.gradient('none', 'zero', 'nan')")
    assert observed("run", name).stderr.count("learn more") == 3
    err = observed("run", "--select", "saturated,numeric", "--ignore", "numeric", name).stderr
    assert err.count("learn more") == 1 and "warning[saturated]" in err
    assert err.endswith("1 finding\n")


def test_what_the_program_puts_in_the_place_of_standard_error_stays_its_own() -> None:
    text = (
        "import contextlib, io, sys\n"
        "with contextlib.redirect_stderr(io.StringIO()) as own:\n"
        "    toy.gradient('none')\n"
        "print(repr(own.getvalue()))\n"
        "sys.stderr = None"
    )
    done = observed("run", program(text))
    assert done.stdout == "''\n"
    assert "error[outside-tape]" in done.stderr


def test_a_closed_standard_error_harms_nothing() -> None:
    done = observed(
        "run", "--output", "report.txt", program("import sys\nsys.stderr.close()\ntoy.gradient('none')\nprint(1)")
    )
    assert (done.returncode, done.stdout) == (0, "1\n")
    assert "error[outside-tape]" in Path("report.txt").read_text(encoding="utf-8")


def test_a_program_without_a_standard_error_runs_and_leaves_its_report() -> None:
    name = program("import sys\nprint(sys.stderr)\ntoy.gradient('none')")
    command_line = shlex.join([sys.executable, str(SUPPORT / "toy_run.py"), "run", "--output", "r.txt", name])
    done = subprocess.run(
        ["sh", "-c", f"{command_line} 2>&-"], env=_environment(), stdout=subprocess.PIPE, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "None\n")
    assert "error[outside-tape]" in Path("r.txt").read_text(encoding="utf-8")


def test_a_standard_error_that_knows_no_chinese_gets_escapes() -> None:
    err = observed("run", "--lang", "zh", program("toy.gradient('none')"), PYTHONIOENCODING="ascii").stderr
    assert "\\u9519\\u8bef[outside-tape]" in err


def test_what_of_ours_fails_is_one_line_and_the_program_runs_on() -> None:
    done = observed(
        "--broken", "run", "--format", "json", "--output", "r.json", program("toy.gradient('none')\nprint('on')")
    )
    assert (done.returncode, done.stdout) == (0, "on\n")
    assert done.stderr.count("a part of gradwhy failed") == 1
    assert "RuntimeError: no explanation" in done.stderr
    assert "RuntimeError: no explanation" in read_report(Path("r.json")).warnings[0]


# --- what is kept


def test_a_json_report_is_written_with_every_text_in_its_language() -> None:
    observed(
        "run",
        "--lang",
        "zh",
        "--format",
        "json",
        "--output",
        "r.json",
        program("toy.gradient('none')"),
        "--epochs",
        "3",
    )
    report = read_report(Path("r.json"))
    assert (report.program, report.arguments, report.exit_status) == ("train.py", ("--epochs", "3"), 0)
    assert (report.language, report.frameworks) == ("zh", {"toy": "1.0"})
    assert report.findings[0].headline.text == "梯度到不了 `w0`"
    assert report.files["train.py"].lines["2"] == "toy.gradient('none')"


def test_a_text_report_holds_what_a_saved_one_shows(capsys: pytest.CaptureFixture[str]) -> None:
    name = program("for _ in range(3):\n    toy.gradient('none')")
    observed("run", "--output", "r.txt", name)
    observed("run", "--format", "json", "--output", "r.json", name)
    assert main(["report", "r.json"]) == 0
    assert Path("r.txt").read_text(encoding="utf-8") == capsys.readouterr().out
    assert "the question was asked 3 times" in Path("r.txt").read_text(encoding="utf-8")


def test_a_killed_program_leaves_the_report_of_what_it_had_asked() -> None:
    name = program("import os\ntoy.gradient('none')\nos._exit(7)")
    assert observed("run", "--format", "json", "--output", "r.json", name).returncode == 7
    report = read_report(Path("r.json"))
    assert len(report.findings) == 1 and report.exit_status is None


def test_a_report_of_an_earlier_run_does_not_survive_one_that_asks_nothing() -> None:
    Path("r.json").write_text("old", encoding="utf-8")
    observed("run", "--format", "json", "--output", "r.json", program("import os\nos._exit(0)"))
    assert read_report(Path("r.json")).questions == ()


def test_the_report_goes_where_it_was_meant_to_though_the_program_changes_its_folder() -> None:
    Path("elsewhere").mkdir()
    name = program("import os\nos.chdir('elsewhere')\ntoy.gradient('none')")
    done = observed("run", "--format", "json", "--output", "r.json", name)
    assert len(read_report(Path("r.json")).findings) == 1
    assert " 4 | toy.gradient('none')" in done.stderr


def test_a_report_that_cannot_be_written_later_is_told_once_and_changes_no_status() -> None:
    Path("out").mkdir()
    text = "import shutil\nshutil.rmtree('out')\ntoy.gradient('none')\ntoy.gradient('zero')"
    done = observed("run", "--format", "json", "--output", "out/r.json", program(text))
    assert done.returncode == 0
    assert done.stderr.count("cannot write") == 1


def test_a_report_that_cannot_be_written_at_all_is_refused_before_the_program_runs() -> None:
    if os.geteuid() == 0:
        target = "/proc/r.json"
    else:
        Path("locked").mkdir(mode=0o500)
        target = "locked/r.json"
    done = observed("run", "--output", target, program("print('ran')"))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"gradwhy: cannot write {target}") and done.stderr.count("\n") == 1


def test_a_forked_child_ends_as_without_gradwhy_and_leaves_the_last_line_and_the_report_to_its_parent() -> None:
    text = (
        "import os\n"
        "toy.gradient('none')\n"
        "child = os.fork()\n"
        "if child:\n    print(os.waitpid(child, 0)[1])\n"
        "else:\n    toy.gradient('nan')"
    )
    done = observed("run", "--strict", "--format", "json", "--output", "r.json", program(text))
    assert (done.returncode, done.stdout) == (1, "0\n")
    assert done.stderr.count("gradwhy: ") == 1
    assert len(read_report(Path("r.json")).questions) == 1


def test_what_threads_and_exit_handlers_ask_is_in_the_report() -> None:
    text = (
        "import atexit, threading\n"
        "gate = threading.Event()\n"
        "def late():\n    gate.wait(20)\n    toy.gradient('zero')\n"
        "threading.Thread(target=late).start()\n"
        "atexit.register(lambda: toy.gradient('nan'))\n"
        "gate.set()"
    )
    done = observed("run", program(text))
    assert "warning[saturated]" in done.stderr and "error[numeric]" in done.stderr
    assert done.stderr.endswith("gradwhy: 2 questions, 2 sources, 2 findings\n")


# --- how it ends


@pytest.mark.parametrize(
    ("text", "strict", "status"),
    [
        ("toy.gradient('none')", False, 0),
        ("toy.gradient('none')", True, 1),
        ("toy.gradient('zero')", True, 0),
        ("toy.gradient('ok')", True, 0),
        ("toy.gradient('none'); raise SystemExit(5)", True, 5),
        ("toy.gradient('none'); raise SystemExit('said')", False, 1),
        ("toy.gradient('ok'); 1 / 0", True, 1),
    ],
)
def test_the_status_is_pythons_and_one_with_strict_and_an_error(text: str, strict: bool, status: int) -> None:
    options = ["--strict"] if strict else []
    assert observed("run", *options, program(text)).returncode == status


def test_an_uncaught_exception_is_shown_as_python_shows_it_before_the_last_line() -> None:
    name = program("def step():\n    toy.gradient('none')\n    raise ValueError('boom')\nstep()")
    plain = subprocess.run([sys.executable, name], env=_environment(), capture_output=True, text=True, check=False)
    done = observed("run", name)
    assert done.returncode == plain.returncode == 1
    # Python 3.11 names the script as it was given, and we by its path.
    ours = done.stderr.replace(f'"{Path(name).resolve()}"', f'"{name}"')
    theirs = plain.stderr.replace(f'"{Path(name).resolve()}"', f'"{name}"')
    assert theirs in ours
    assert ours.endswith(theirs + "\ngradwhy: 1 question, 1 source, 1 finding\n")


def test_a_program_that_is_not_there_ends_as_under_python_without_a_last_line() -> None:
    plain = subprocess.run([sys.executable, "gone.py"], capture_output=True, text=True, check=False)
    done = observed("run", "gone.py")
    assert (done.returncode, done.stderr) == (plain.returncode, plain.stderr)
    Path("empty").mkdir()
    assert observed("run", "empty").returncode == 1


def test_a_syntax_error_ends_as_under_python_without_a_last_line() -> None:
    Path("broken.py").write_text("x = (", encoding="utf-8")
    done = observed("run", "broken.py")
    assert done.returncode == 1
    assert "SyntaxError" in done.stderr and "gradwhy" not in done.stderr.replace(str(Path.cwd()), "")


def test_an_interrupted_program_dies_of_the_signal_and_leaves_its_report() -> None:
    name = program("import time\ntoy.gradient('none')\nprint('ready', flush=True)\ntime.sleep(60)")
    process = started("run", "--format", "json", "--output", "r.json", name)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert process.returncode == -signal.SIGINT
    assert err.count("KeyboardInterrupt") == 1
    assert err.endswith("gradwhy: 1 question, 1 source, 1 finding\n")
    assert read_report(Path("r.json")).exit_status == 130


def test_a_program_that_cannot_be_observed_is_not_started(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused(self: Attachments) -> None:
        raise RuntimeError("no hooks today")

    monkeypatch.setattr(Attachments, "install", refused)
    Path("plain.py").write_text("print('ran')", encoding="utf-8")
    assert main(["run", "plain.py"]) == 3
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err == "gradwhy: the program cannot be started under observation: RuntimeError('no hooks today')\n"


def test_the_program_sees_its_own_arguments_name_and_folder() -> None:
    Path("deep").mkdir()
    text = "import json, sys\nprint(json.dumps([sys.argv, __name__, sys.path[0]]))"
    name = program(text, "deep/show.py")
    seen = json.loads(observed("run", name, "--lang", "x", "--").stdout)
    assert seen == [["deep/show.py", "--lang", "x", "--"], "__main__", str(Path("deep").resolve())]
    seen = json.loads(observed("run", "--strict", "-m", "deep.show", "--strict").stdout)
    assert seen[0][1:] == ["--strict"] and seen[1] == "__main__"


def test_a_program_whose_files_are_named_like_our_libraries_gets_its_own_text_explained() -> None:
    for name in ("pygments.py", "markdown_it.py"):
        Path(name).write_text("raise AssertionError('not ours to import')", encoding="utf-8")
    done = observed("run", program("toy.gradient('none')"))
    assert "error[outside-tape]" in done.stderr and "failed" not in done.stderr
