"""What a forked child runs: a program as `python PROGRAM` would, or under gradwhy."""

from __future__ import annotations

import json
import random
import sys
import types
from pathlib import Path


def plain(program: str, *arguments: str) -> int:
    """Run `program` as `python PROGRAM ARGUMENTS` does."""
    path = str(Path(program).resolve())
    main = types.ModuleType("__main__")
    main.__dict__.update(__file__=path, __builtins__=__builtins__)
    sys.modules["__main__"] = main
    seed()
    sys.argv = [program, *arguments]
    sys.path[0] = str(Path(path).parent)
    code = compile(Path(path).read_bytes(), path, "exec")
    try:
        exec(code, main.__dict__)
    except SystemExit:
        raise
    except BaseException as problem:
        # The frame of this function is not the program's.
        assert problem.__traceback__ is not None
        problem.__traceback__ = problem.__traceback__.tb_next
        sys.excepthook(type(problem), problem, problem.__traceback__)
        if isinstance(problem, KeyboardInterrupt):
            raise
        return 1
    return 0


def observed(program: str, *arguments: str) -> int:
    """Run `gradwhy run --format json --output report.json PROGRAM ARGUMENTS`."""
    return gradwhy("run", "--format", "json", "--output", "report.json", program, *arguments)


def keeping_graphs(program: str, *arguments: str) -> int:
    """Like `observed`, and keep every question that was explained, with its flow graph, in `asked.json`."""
    from gradwhy import diagnose
    from gradwhy.flow import Finding, FlowGraph, Question, to_json

    asked: list[tuple[object, object]] = []
    explain = diagnose.explain

    def keeping(question: Question, graph: FlowGraph, *numbers: int) -> list[Finding]:
        asked.append((to_json(question), to_json(graph)))
        kept.write_text(json.dumps(asked), encoding="utf-8")
        return explain(question, graph, *numbers)

    kept = Path("asked.json").resolve()
    kept.write_text("[]", encoding="utf-8")
    diagnose.explain = keeping
    return observed(program, *arguments)


def seed() -> None:
    """Make the random numbers of Python, NumPy and TensorFlow the same in every run: some programs print what they computed of them."""
    random.seed(0)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(0)
    if "tensorflow" in sys.modules:
        sys.modules["tensorflow"].random.set_seed(0)


def gradwhy(*arguments: str) -> int:
    """Run the command line of gradwhy."""
    seed()
    from gradwhy.cli.main import main

    sys.argv = ["gradwhy", *arguments]
    return main() or 0
