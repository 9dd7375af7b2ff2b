"""Backends are attached right after the program has imported their frameworks, unseen."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import re
import subprocess
import sys
import textwrap
import threading
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gradwhy.backends.contract import Answer
from gradwhy.backends.table import FACTORIES
from gradwhy.flow import Text
from gradwhy.running.attach import Attachments, is_older
from gradwhy.source.positions import is_user_file

BACKEND = """
    import sys
    class Backend:
        framework = "framework_a"
        oldest = {oldest}
        def __init__(self):
            self.calls = []
        def version(self):
            return sys.modules["framework_a"].__version__
        def attach(self, witness):
            self.calls.append(("attach", sys.modules["framework_a"].ready))
            {attach}
        def detach(self):
            self.calls.append("detach")
            {detach}
        def settle(self, problem):
            self.calls.append(("settle", problem))
            {settle}
    made = []
    def create():
        made.append(Backend())
        return made[-1]
"""


class Heard:
    """A witness that remembers what failed."""

    def __init__(self) -> None:
        self.failures: list[str] = []
        self.attached: list[tuple[str, str]] = []

        self.declined_texts: list[Text] = []

    def declined(self, why: Text) -> None:
        self.declined_texts.append(why)

    def answered(self, answer: Answer) -> None:
        raise AssertionError

    def escaped(self, problem: BaseException) -> None:
        raise AssertionError

    def failed(self, what: str, problem: BaseException) -> None:
        self.failures.append(f"{what}: {type(problem).__name__}")


class Scene:
    """Modules that pretend to be frameworks and backends, in a folder of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.heard = Heard()
        self.attachments = Attachments(
            self.heard,
            on_attached=lambda *given: self.heard.attached.append(given),
            factories={"framework_a": "backend_a:create", "framework_b": "backend_b:create"},
        )
        self.write("framework_a/__init__.py", "ready = False\n__version__ = '1.2'\nfrom . import part\nready = True")
        self.write("framework_a/part.py", "seen = 1")
        self.backend()

    def write(self, name: str, text: str) -> None:
        (self.folder / name).parent.mkdir(exist_ok=True)
        (self.folder / name).write_text(textwrap.dedent(text), "utf-8")
        importlib.invalidate_caches()

    def backend(self, attach: str = "", detach: str = "", settle: str = "", oldest: tuple[int, int] = (0, 1)) -> None:
        self.write("backend_a.py", BACKEND.format(attach=attach, detach=detach, settle=settle, oldest=oldest))

    @property
    def calls(self) -> list[Any]:
        made = sys.modules["backend_a"].made if "backend_a" in sys.modules else []
        return [call for backend in made for call in backend.calls]


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scene]:
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    made = Scene(tmp_path)
    yield made
    made.attachments.remove()
    for name in [n for n in sys.modules if n.startswith(("framework_", "backend_a", "backend_b"))]:
        del sys.modules[name]


def test_backend_is_attached_once_the_framework_is_ready(scene: Scene) -> None:
    scene.attachments.install()
    assert scene.calls == []
    importlib.import_module("framework_a")
    assert scene.calls == [("attach", True)]
    assert scene.heard.attached == [("framework_a", "1.2")]
    assert [backend.framework for backend in scene.attachments.backends] == ["framework_a"]


def test_part_of_a_framework_imports_the_whole_first(scene: Scene) -> None:
    scene.attachments.install()
    importlib.import_module("framework_a.part")
    assert scene.calls == [("attach", True)]


def test_framework_that_is_imported_already_is_attached_at_once(scene: Scene) -> None:
    importlib.import_module("framework_a")
    scene.attachments.install()
    assert scene.calls == [("attach", True)]


def test_second_import_attaches_nothing(scene: Scene) -> None:
    scene.attachments.install()
    module = importlib.import_module("framework_a")
    importlib.reload(module)
    del sys.modules["framework_a"]
    importlib.import_module("framework_a")
    assert scene.calls == [("attach", True)]


def test_import_in_a_thread_attaches(scene: Scene) -> None:
    scene.attachments.install()
    thread = threading.Thread(target=importlib.import_module, args=("framework_a",))
    thread.start()
    thread.join()
    assert scene.calls == [("attach", True)]


def test_import_that_is_going_on_in_another_thread_is_waited_for(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    scene.write(
        "framework_a/__init__.py",
        "import gate\nready = False\n__version__ = '1.2'\ngate.entered.set()\ngate.leave.wait(20)\nready = True",
    )
    scene.write("gate.py", "import threading\nentered, leave = threading.Event(), threading.Event()")
    gate = importlib.import_module("gate")
    thread = threading.Thread(target=importlib.import_module, args=("framework_a",))
    thread.start()
    assert gate.entered.wait(20)
    real = importlib.import_module

    def let_it_end(name: str) -> object:
        gate.leave.set()
        return real(name)

    monkeypatch.setattr(importlib, "import_module", let_it_end)
    scene.attachments.install()
    gate.leave.set()
    thread.join()
    assert scene.calls == [("attach", True)]


def test_failed_import_is_the_programs_and_the_next_one_attaches(scene: Scene) -> None:
    good = (scene.folder / "framework_a" / "__init__.py").read_text()
    scene.write("framework_a/__init__.py", "raise OSError('no driver')")
    scene.attachments.install()
    with pytest.raises(OSError, match="no driver"):
        importlib.import_module("framework_a")
    assert scene.calls == []
    assert "framework_a" not in sys.modules
    scene.write("framework_a/__init__.py", good + "\n# longer than what is cached\n")
    importlib.import_module("framework_a")
    assert scene.calls == [("attach", True)]


@pytest.mark.parametrize("failure", ["raise OSError('no driver')", "import absent_module", "x = ("])
def test_traceback_of_a_failed_import_has_no_frame_of_ours(scene: Scene, failure: str) -> None:
    scene.write("framework_a/__init__.py", failure)

    def shown() -> list[str]:
        try:
            import framework_a  # noqa: F401  # type: ignore[import-not-found]
        except Exception as problem:
            return [frame.filename for frame in traceback.extract_tb(problem.__traceback__)]
        raise AssertionError

    plain = shown()
    scene.attachments.install()
    assert shown() == plain


def seen(name: str) -> tuple[object, ...]:
    """What a program can see of how a module was loaded."""
    module = importlib.import_module(name)
    spec = module.__spec__
    assert spec is not None
    return (
        type(module.__loader__),
        vars(module.__loader__),
        type(spec.loader),
        re.sub("0x[0-9a-f]+", "", repr(spec)),
        spec.loader is module.__loader__,
    )


def test_loaded_module_looks_as_it_does_without_us(scene: Scene) -> None:
    plain = seen("framework_a")
    del sys.modules["framework_a"]
    scene.attachments.install()
    assert seen("framework_a") == plain
    assert scene.calls == [("attach", True)]


def test_module_sees_its_own_loader_while_it_is_loaded(scene: Scene) -> None:
    scene.write(
        "framework_a/__init__.py",
        "seen = dict(vars(__loader__)), __spec__.loader is __loader__\nready = 1; __version__ = ''",
    )
    scene.attachments.install()
    assert importlib.import_module("framework_a").seen[1]
    assert "exec_module" not in importlib.import_module("framework_a").seen[0]


def test_search_for_a_framework_does_not_import_it(scene: Scene) -> None:
    scene.attachments.install()
    spec = importlib.util.find_spec("framework_a")
    assert spec is not None and spec.origin == str(scene.folder / "framework_a" / "__init__.py")
    assert scene.calls == [] and "framework_a" not in sys.modules
    assert importlib.util.find_spec("framework_b") is None
    importlib.import_module("framework_a")
    assert scene.calls == [("attach", True)]


def test_lazy_loader_attaches_when_the_module_is_first_used(scene: Scene) -> None:
    scene.attachments.install()
    spec = importlib.util.find_spec("framework_a")
    assert spec is not None and spec.loader is not None
    spec.loader = importlib.util.LazyLoader(spec.loader)
    module = importlib.util.module_from_spec(spec)
    sys.modules["framework_a"] = module
    assert spec.loader is not None
    spec.loader.exec_module(module)
    assert scene.calls == []
    assert module.ready
    assert scene.calls == [("attach", True)]


def test_other_modules_are_found_as_ever(scene: Scene) -> None:
    scene.write("other.py", "x = 1")
    scene.attachments.install()
    assert importlib.import_module("other").x == 1
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("framework_b")
    del sys.modules["other"]


def test_framework_is_library_code_wherever_it_stands(scene: Scene) -> None:
    part = str(scene.folder / "framework_a" / "part.py")
    assert is_user_file(part)
    scene.attachments.install()
    importlib.import_module("framework_a")
    assert not is_user_file(part)
    assert is_user_file(str(scene.folder / "train.py"))


def test_backend_that_cannot_be_imported_is_told_once(scene: Scene) -> None:
    scene.write("backend_a.py", "import absent_module")
    scene.attachments.install()
    assert importlib.import_module("framework_a").ready
    importlib.reload(sys.modules["framework_a"])
    assert scene.heard.failures == ["framework_a.attach: ModuleNotFoundError"]
    assert scene.attachments.backends == ()


def test_backend_that_fails_to_attach_is_detached(scene: Scene) -> None:
    scene.backend(attach="raise ValueError('unknown version')")
    scene.attachments.install()
    assert importlib.import_module("framework_a").ready
    assert scene.calls == [("attach", True), "detach"]
    assert scene.heard.failures == ["framework_a.attach: ValueError"]
    assert scene.attachments.backends == ()


def test_release_older_than_observed_is_declined_by_name_and_range(scene: Scene) -> None:
    scene.backend(oldest=(1, 3))
    scene.attachments.install()
    assert importlib.import_module("framework_a").ready
    assert scene.calls == [] and scene.attachments.backends == ()
    [why] = scene.heard.declined_texts
    assert why.values == {"framework": "framework_a", "version": "1.2", "oldest": "1.3"}


@pytest.mark.parametrize(
    ("version", "oldest", "expected"),
    [("1.2", (1, 3), True), ("0.9.9", (1, 0), True), ("1.10", (1, 9), False), ("1.2.5+cpu", (1, 2), False)],
)
def test_releases_are_compared_by_number(version: str, oldest: tuple[int, int], expected: bool) -> None:
    assert is_older(version, oldest) is expected


def test_version_that_cannot_be_read_counts_as_observed() -> None:
    assert not is_older("dev", (1, 2))


def test_interrupt_while_attaching_is_the_users(scene: Scene) -> None:
    scene.backend(attach="raise KeyboardInterrupt")
    scene.attachments.install()
    with pytest.raises(KeyboardInterrupt):
        importlib.import_module("framework_a")
    assert scene.calls == [("attach", True), "detach"]
    assert scene.heard.failures == []


def test_end_is_told_to_every_backend(scene: Scene) -> None:
    scene.backend(settle="raise ValueError")
    scene.attachments.install()
    importlib.import_module("framework_a")
    problem = OSError()
    scene.attachments.settle(problem)
    assert scene.calls[-1] == ("settle", problem)
    assert scene.heard.failures == ["framework_a.settle: ValueError"]


@pytest.mark.parametrize("detach", ["", "raise ValueError"])
def test_removal_leaves_nothing_behind(scene: Scene, detach: str) -> None:
    scene.backend(detach=detach)
    before = list(sys.meta_path)
    scene.attachments.install()
    assert sys.meta_path != before
    importlib.import_module("framework_a")
    scene.attachments.remove()
    scene.attachments.remove()
    assert sys.meta_path == before
    assert scene.calls == [("attach", True), "detach"]
    assert scene.heard.failures == (["framework_a.detach: ValueError"] if detach else [])


def test_spec_that_was_found_before_the_removal_attaches_nothing(scene: Scene) -> None:
    scene.attachments.install()
    spec = importlib.util.find_spec("framework_a")
    scene.attachments.remove()
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["framework_a"] = module
    spec.loader.exec_module(module)
    assert module.ready and scene.calls == []


def test_finder_that_the_program_removes_itself_is_not_missed(scene: Scene) -> None:
    scene.attachments.install()
    sys.meta_path.pop(0)
    scene.attachments.remove()


WITHOUT = {
    "gradwhy": "import gradwhy",
    "the command line": "from gradwhy.cli.main import main; main(['--help'])",
    "a session and the import hook": (
        "from gradwhy.session import Session; from gradwhy.running.attach import Attachments; Attachments(Session('x')).install()"
    ),
    "the runner": "import gradwhy.running.program",
    "the source reader": "import gradwhy.source.names, gradwhy.source.statements",
}
HEAVY = ("tensorflow", "keras", "torch", "jax", "jaxlib", "numpy", "libcst")


def heavy_modules_after(statement: str) -> list[str]:
    """Which dear modules a fresh Python has imported after a statement."""
    text = f"import sys\n{statement}\nprint('|', *[name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=60, check=True)
    return done.stdout.rpartition("|")[2].split()


@pytest.mark.parametrize("statement", WITHOUT.values(), ids=WITHOUT.keys())
def test_nothing_dear_is_imported(statement: str) -> None:
    assert heavy_modules_after(statement) == []


def test_import_of_something_dear_would_be_seen(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("")
    (tmp_path / "libcst").mkdir()
    (tmp_path / "libcst" / "__init__.py").write_text("")
    statement = f"sys.path.insert(0, {str(tmp_path)!r})\nimport gradwhy, torch, libcst"
    assert heavy_modules_after(statement) == ["torch", "libcst"]


@pytest.mark.parametrize("framework", FACTORIES)
def test_table_names_a_function_of_the_backend(framework: str) -> None:
    module, _, function = FACTORIES[framework].partition(":")
    spec = importlib.util.find_spec(module)
    assert spec is not None and spec.origin is not None
    tree = ast.parse(Path(spec.origin).read_bytes())
    assert function in [part.name for part in tree.body if isinstance(part, ast.FunctionDef)]
