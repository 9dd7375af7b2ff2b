"""A program that is run by us does, prints and ends as it does under Python."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import textwrap
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

DRIVER = Path(__file__).parents[1] / "support" / "run_program.py"
ENDED = re.compile(r"\[ended (-?\d+) (\w+) (\w+)\]\n")


@dataclass(frozen=True)
class Ended:
    status: int
    out: str
    err: str


def start(command: list[str], folder: Path, given: str = "", **environment: str) -> Ended:
    done = subprocess.run(
        [sys.executable, *command],
        cwd=folder,
        input=given.encode(),
        capture_output=True,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONHASHSEED": "0", **environment},
        timeout=60,
        check=False,
    )
    # Addresses, reference counts and times differ from run to run.
    found = (raw.decode("utf-8", "replace") for raw in (done.stdout, done.stderr))
    out, err = (re.sub(r"0x[0-9a-f]+|refcount : \d+|in \d+\.\d+s", "...", text) for text in found)
    return Ended(done.returncode, out, err)


def both(command: list[str], folder: Path, given: str = "", **environment: str) -> tuple[Ended, Ended]:
    """How it ends under Python, and how under us, without our own last line."""
    ours = start([str(DRIVER), *command], folder, given, **environment)
    assert ENDED.search(ours.err), ours.err
    return start(command, folder, given, **environment), Ended(ours.status, ours.out, ENDED.sub("", ours.err))


def write(folder: Path, **texts: str) -> None:
    for name, text in texts.items():
        (folder / f"{name}.py").write_text(textwrap.dedent(text), "utf-8")


PROGRAMS = {
    "the module's names": """
        "Its docstring."
        import sys
        print(list(globals()), __name__, __doc__, __file__, __spec__, __package__, __cached__, __builtins__, __loader__)
        print(sys.modules["__main__"].__dict__ is globals(), sys.argv, sys.path[0], sys.flags.safe_path)
    """,
    "names at exit": """
        import atexit
        secret = "still here"
        def at_exit():
            print(secret, sorted(globals()))
        atexit.register(at_exit)
    """,
    "exit handlers and threads in order": """
        import atexit, threading, time
        print("start")
        atexit.register(print, "handler 1")
        atexit.register(print, "handler 2")
        begun = threading.Event()
        def work():
            begun.wait()
            print("thread ends")
        threading.Thread(target=work).start()
        class Late:
            def __del__(self): print("deleted")
        late = Late()
        print("main ends")
        begun.set()
    """,
    "a handler that fails": """
        import atexit
        def at_exit(): raise ValueError("at exit")
        atexit.register(at_exit)
    """,
    "a thread that fails": """
        import threading
        def work(): raise ValueError("in a thread")
        thread = threading.Thread(target=work, name="worker"); thread.start(); thread.join()
    """,
    "exit with a number": "import sys; sys.exit(3)",
    "exit with none": "import sys; sys.exit()",
    "exit with true": "import sys; sys.exit(True)",
    "exit with a negative number": "import sys; sys.exit(-1)",
    "exit with a number too large for a byte": "import sys; sys.exit(256 + 7)",
    "exit with a huge number": "import sys; sys.exit(2 ** 70)",
    "exit with a text": "import sys; sys.exit('没有梯度')",
    "exit with an object": "import sys; sys.exit([1, 2])",
    "exit of another class": "class Stop(SystemExit): pass\nraise Stop(5)",
    "exit from a thread": "import threading, sys; t = threading.Thread(target=sys.exit, args=(4,)); t.start(); t.join()",
    "an exception": """
        def 函数(x):
            return 1 / x
        函数(0)
    """,
    "a chain of exceptions": """
        def inner():
            raise KeyError("first")
        def outer():
            try:
                inner()
            except KeyError as first:
                raise ValueError("second") from first
        try:
            outer()
        except ValueError:
            raise RuntimeError("third")
    """,
    "a group of exceptions": """
        def fail(x): raise ValueError(x)
        found = []
        for i in range(2):
            try: fail(i)
            except ValueError as e: found.append(e)
        raise ExceptionGroup("both", found)
    """,
    "an exception with a note": "e = ValueError('x'); e.add_note('noted'); raise e",
    "an exception whose text fails": """
        class Odd(Exception):
            def __str__(self): raise RuntimeError("no text")
        raise Odd()
    """,
    "recursion without end": """
        def f(): f()
        try: f()
        except RecursionError as e: print(type(e))
    """,
    "a hook for exceptions": """
        import sys
        def hook(kind, value, place):
            print("hooked", kind.__name__, value, place.tb_frame.f_code.co_name, place.tb_next)
        sys.excepthook = hook
        raise ValueError("x")
    """,
    "a hook for exceptions that fails": """
        import sys
        def hook(*_): raise TypeError("in the hook")
        sys.excepthook = hook
        raise ValueError("x")
    """,
    "a hook for exceptions that exits": """
        import sys
        def hook(*_): sys.exit(9)
        sys.excepthook = hook
        raise ValueError("x")
    """,
    "no hook for exceptions": "import sys; del sys.excepthook; raise ValueError('x')",
    "the last exception is kept": """
        import atexit, sys
        atexit.register(lambda: print(sys.last_type, sys.last_value, sys.last_traceback.tb_lineno))
        raise ValueError("x")
    """,
    "no exception is being handled": "import sys; print(sys.exc_info())\ntry: raise ValueError\nexcept ValueError as e: print(e.__context__)",
    "an interrupt": "raise KeyboardInterrupt('by hand')",
    "an interrupt by signal": "import os, signal; os.kill(os.getpid(), signal.SIGINT); print('not reached')",
    "a class derived from the interrupt": "class Stop(KeyboardInterrupt): pass\nraise Stop('x')",
    "killed": "import os, signal, sys; print('x', flush=True); os.kill(os.getpid(), signal.SIGTERM)",
    "left at once": "import os; print('x', flush=True); os._exit(6)",
    "standard error closed": "import sys; sys.stderr.close(); raise ValueError('x')",
    "standard error gone": "import sys; sys.stderr = None; sys.exit('x')",
    "standard error gone, an exception": "import sys; sys.stderr = None; raise ValueError('x')",
    "standard error closed, a text": "import sys; sys.stderr.close(); sys.exit('x')",
    "pickling of its own class": """
        import pickle
        class Own: pass
        print(type(pickle.loads(pickle.dumps(Own()))) is Own, pickle.dumps(Own())[:40])
    """,
    "dataclasses and types": """
        from __future__ import annotations
        import dataclasses, typing
        @dataclasses.dataclass
        class Own:
            x: int
            y: Other | None = None
        class Other: pass
        print(Own(1), typing.get_type_hints(Own))
    """,
    "annotations": "x: int = 3\nprint(__annotations__)",
    "its own source": """
        import inspect, sys
        def own(): return 1  # a comment
        class Own:
            pass
        print(inspect.getsource(own), inspect.getsource(Own), inspect.getsource(sys.modules["__main__"])[:20])
    """,
    "unittest": """
        import unittest
        class Own(unittest.TestCase):
            def test_fails(self): self.assertEqual(1, 2)
            def runTest(self): pass
        if __name__ == "__main__":
            unittest.main(argv=["x", "Own.runTest"])
    """,
    "doctest": """
        def f():
            '''
            >>> f()
            2
            '''
            return 1
        import doctest
        print(doctest.testmod())
    """,
    "children that are spawned": """
        import multiprocessing
        class Own:
            def __init__(self, x): self.x = x
        def work(own): return own.x * 2, __name__
        if __name__ == "__main__":
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                print(pool.map(work, [Own(1), Own(2)]))
    """,
    "children that are forked": """
        import os, sys
        child = os.fork()
        if child == 0:
            print("child", flush=True)
            os._exit(0)
        os.waitpid(child, 0)
        print("parent")
    """,
    "imports itself": "import __main__, sys\nx = 4\nprint(__main__.x, __main__ is sys.modules['__main__'])",
    "imports its neighbour": "import neighbour\nprint(neighbour.where)",
    "warnings": "import warnings\nwarnings.warn('x', DeprecationWarning)\nwarnings.warn('y')",
    "a warning of the compiler": "x = 1\nprint(x is 1)",
    "an escape that is none": r"print('\d')",
    "arguments": "import sys; print(sys.argv)",
    "reads what it is given": "print(input(), input())",
    "a syntax error": "x = (\n",
    "a syntax error of the compiler": "def f():\n    x = 1\n    nonlocal y\n",
    "an indentation error": "if 1:\nx = 1\n",
    "does not close what it prints": "import sys; sys.stdout.write('no line end')",
    "the future of the runner is not its own": "from typing import get_type_hints\ndef f(x: 'int' = 1): ...\nprint(f.__annotations__, (lambda: 1).__code__.co_flags)",
    "an empty program": "",
}


@pytest.mark.parametrize("text", PROGRAMS.values(), ids=PROGRAMS.keys())
def test_program_ends_as_under_python(text: str, tmp_path: Path) -> None:
    write(tmp_path, program=text, neighbour="where = __file__")
    plain, ours = plain_and_ours(["program.py", "a", "--b"], tmp_path, "first\nsecond\n")
    assert ours == plain


def plain_and_ours(command: list[str], folder: Path, given: str = "", **environment: str) -> tuple[Ended, Ended]:
    """As `both`, for a program that may end the process itself."""
    ours = start([str(DRIVER), *command], folder, given, **environment)
    return start(command, folder, given, **environment), Ended(ours.status, ours.out, ENDED.sub("", ours.err))


def test_comparison_can_fail(tmp_path: Path) -> None:
    write(tmp_path, program="import sys; print('gradwhy.running.program' in sys.modules)")
    plain, ours = both(["program.py"], tmp_path)
    assert (plain.out, ours.out) == ("False\n", "True\n")


@pytest.mark.parametrize(
    "content",
    [
        b'x = "\xff"\n',
        b'# coding: nonsense\nprint("\xe4")\n',
        b'# coding: ascii\nprint("\xe4")\n',
        b"x = 1\0\n",
        b"\xef\xbb\xbf# coding: gbk\nprint(1)\n",
        '# -*- coding: gbk -*-\nprint("梯度")\nraise ValueError("没有梯度")\n'.encode("gbk"),
        b"\xef\xbb\xbfprint('with a mark')\n",
        b"print(1)\r\nprint(2)\r\nx = '''a\r\nb'''\r\nprint(repr(x))\r\n",
        b"print(1)\x0c\nprint(2)",
    ],
)
def test_encoding_is_read_as_python_reads_it(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_bytes(content)
    plain, ours = both(["program.py"], tmp_path)
    assert ours == plain


@pytest.mark.parametrize(
    "command",
    [
        *(["absent.py"], ["folder"], ["."], [""], ["program.py/"], ["link.py"]),
        *(["-m", "absent"], ["-m", "package"], ["-m", "package.absent"]),
        *(["-m", "absent.module"], ["-m", "package.broken"], ["-m", "not a name"]),
    ],
    ids=" ".join,
)
def test_program_that_is_not_there_is_refused_as_by_python(command: list[str], tmp_path: Path) -> None:
    write(tmp_path, program="print(1)")
    (tmp_path / "folder").mkdir()
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").touch()
    (tmp_path / "package" / "broken.py").write_text("x = (")
    (tmp_path / "link.py").symlink_to("nowhere.py")
    plain, ours = both(command, tmp_path)
    assert plain.status != 0
    assert ours == plain


SHOW = """
    import sys, atexit
    from . import part
    print(__name__, __package__, __spec__.name, __file__, sys.argv, sys.path[0], list(globals()), part.__name__)
    atexit.register(lambda: print("at exit", __name__))
    def fail(): raise ValueError("x")
    if sys.argv[1:]: fail()
"""


@pytest.mark.parametrize("arguments", [[], ["fail"]], ids=["ends well", "fails"])
@pytest.mark.parametrize("module", ["package", "package.main"])
def test_module_is_run_as_by_python(module: str, arguments: list[str], tmp_path: Path) -> None:
    (tmp_path / "package").mkdir()
    write(tmp_path / "package", __init__="print('package')", part="", main=SHOW, __main__=SHOW)
    plain, ours = both(["-m", module, *arguments], tmp_path)
    assert ours == plain
    assert "at exit __main__" in ours.out


@pytest.mark.parametrize("kind", ["folder", "archive.zip"])
def test_folder_and_archive_are_run_as_by_python(kind: str, tmp_path: Path) -> None:
    text = "import sys, part\nprint(__name__, __file__, sys.argv, sys.path[0], part.__name__, __spec__.name)\nraise ValueError('x')\n"
    if kind == "folder":
        (tmp_path / kind).mkdir()
        write(tmp_path / kind, __main__=text, part="")
    else:
        with zipfile.ZipFile(tmp_path / kind, "w") as archive:
            archive.writestr("__main__.py", text)
            archive.writestr("part.py", "")
    plain, ours = both([kind, "a"], tmp_path)
    assert ours == plain


def test_compiled_file_is_run_as_by_python(tmp_path: Path) -> None:
    import py_compile

    write(tmp_path, program="import sys\nprint(__file__, __loader__, sys.argv)")
    py_compile.compile(str(tmp_path / "program.py"), cfile=str(tmp_path / "program.pyc"))
    plain, ours = both(["program.pyc", "a"], tmp_path)
    assert ours == plain


def test_standard_input_is_run_as_by_python(tmp_path: Path) -> None:
    write(tmp_path, neighbour="where = 1")
    text = (
        "import sys, neighbour\nprint(sys.argv, sys.path[0], __name__, neighbour.where)\ndef f(): return 1 / 0\nf()\n"
    )
    plain, ours = both(["-", "a"], tmp_path, text)
    assert (ours.status, ours.out) == (plain.status, plain.out)
    assert ours.err.splitlines()[-1] == plain.err.splitlines()[-1]


def test_script_behind_a_link_finds_its_neighbour(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    write(tmp_path / "real", program="import sys, neighbour\nprint(sys.path[0], __file__)", neighbour="")
    (tmp_path / "link.py").symlink_to("real/program.py")
    plain, ours = both(["link.py"], tmp_path)
    assert ours == plain


def test_script_in_another_folder(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    write(
        tmp_path / "sub",
        program="import sys, os, neighbour\nprint(sys.path[0], __file__, sys.argv, os.getcwd())",
        neighbour="",
    )
    plain, ours = both(["sub/../sub/program.py"], tmp_path)
    assert ours == plain


def test_safe_path_is_kept(tmp_path: Path) -> None:
    write(tmp_path, program="import sys; print(sys.path[:1], sys.flags.safe_path)")
    plain, ours = both(["program.py"], tmp_path, PYTHONSAFEPATH="1")
    assert ours == plain


def test_interrupted_program_dies_of_the_signal(tmp_path: Path) -> None:
    write(tmp_path, program="raise KeyboardInterrupt")
    for command in (["program.py"], ["-m", "program"]):
        plain, ours = both(command, tmp_path)
        assert plain.status == -signal.SIGINT
        assert ours == plain


def test_nobody_reads_what_the_program_prints(tmp_path: Path) -> None:
    write(tmp_path, program="print('x' * 10)")

    def status(command: list[str]) -> tuple[int, list[str]]:
        reader, writer = os.pipe()
        os.close(reader)
        done = subprocess.run(
            [sys.executable, *command], stdout=writer, stderr=subprocess.PIPE, cwd=tmp_path, check=False
        )
        os.close(writer)
        return done.returncode, [line for line in done.stderr.decode().splitlines() if not line.startswith("[ended")]

    assert status([str(DRIVER), "program.py"]) == status(["program.py"]) != (0, [])


def test_interrupt_while_threads_are_waited_for(tmp_path: Path) -> None:
    text = """
        import _thread, threading
        def work():
            threading.main_thread().join(0.2)
            _thread.interrupt_main()
            threading.main_thread().join(0.2)
            print("thread ends")
        threading.Thread(target=work).start()
        print("main ends")
    """
    write(tmp_path, program=text)
    plain, ours = both(["program.py"], tmp_path)
    assert (ours.status, ours.out) == (plain.status, plain.out)
    assert ours.err == plain.err


def test_last_line_of_ours_comes_after_everything_the_program_does(tmp_path: Path) -> None:
    write(
        tmp_path,
        program="""
            import atexit, sys, threading
            atexit.register(print, "handler", file=sys.stderr)
            main = threading.current_thread()
            threading.Thread(target=lambda: (main.join(), print("thread", file=sys.stderr))).start()
        """,
    )
    ours = start([str(DRIVER), "program.py"], tmp_path)
    assert ours.err.splitlines() == ["thread", "handler", "[ended 0 NoneType True]"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("raise ValueError", "1 ValueError True"),
        ("x = (", "1 SyntaxError False"),
        ("raise SystemExit(3)", "3 NoneType True"),
        ("raise KeyboardInterrupt", "130 KeyboardInterrupt True"),
        ("", "0 NoneType True"),
    ],
)
def test_outcome_says_how_the_program_ended(text: str, said: str, tmp_path: Path) -> None:
    write(tmp_path, program=text)
    assert f"[ended {said}]" in start([str(DRIVER), "program.py"], tmp_path).err


def test_outcome_of_a_missing_program(tmp_path: Path) -> None:
    assert "[ended 2 NoneType False]" in start([str(DRIVER), "absent.py"], tmp_path).err


THROUGH_OURS = """
    from gradwhy.backends.table import backend_of
    {more}
    def ask(name):
        try:
            return call(backend_of, name)
        except KeyError as wrong:
            raise TypeError("chained") from ExceptionGroup("group", [wrong])
    ask("absent")
"""
STANDING_IN = """
    import types
    from gradwhy.source.positions import STAND_IN
    def stands_in(function, name): return function(name)
    call = types.FunctionType(stands_in.__code__.replace(co_qualname=STAND_IN, co_name="ours"), globals())
"""


@pytest.mark.parametrize("more", ["call = lambda function, name: function(name)", STANDING_IN.strip()])
def test_frames_of_ours_are_not_shown(more: str, tmp_path: Path) -> None:
    write(tmp_path, program=THROUGH_OURS.format(more=more))
    shown = start([str(DRIVER), "program.py"], tmp_path).err
    assert shown.count("in ask") == 2
    assert "table.py" not in shown and "in ours" not in shown
    assert "table.py" in start(["program.py"], tmp_path).err
