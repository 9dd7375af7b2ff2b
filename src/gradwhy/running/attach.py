"""Attaching a backend right after the program has imported its framework."""

from __future__ import annotations

import contextlib
import importlib
import os
import re
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from importlib.machinery import ModuleSpec
from types import FunctionType, ModuleType
from typing import Any

from gradwhy.backends.contract import Backend, Witness
from gradwhy.backends.patches import Undo, standing
from gradwhy.backends.table import FACTORIES, backend_of
from gradwhy.flow import Text
from gradwhy.source.positions import mark_library

_IMPORT_MACHINERY = "<frozen importlib._bootstrap_external>"


class Attachments:
    """The backends of the frameworks that the program imports, attached as it imports them.

    A finder at the head of `sys.meta_path` asks the other finders for the framework's spec and hands it on as it is. On the
    spec's own loader object, `exec_module` is set for the time until it is called once: the program sees the loader, the
    spec and the module that it sees without us, of the same classes. What it can see is the finder itself, and an attribute
    more in `vars(spec.loader)` of a spec that was found and never loaded.
    """

    def __init__(
        self,
        witness: Witness,
        *,
        on_attached: Callable[[str, str], None] | None = None,
        factories: Mapping[str, str] = FACTORIES,
    ) -> None:
        self._witness = witness
        self._on_attached = on_attached
        self._factories = factories
        self._backends: dict[str, Backend] = {}
        self._tried: set[str] = set()
        self._lock = threading.RLock()
        self._undo: Undo | None = None

    @property
    def backends(self) -> tuple[Backend, ...]:
        """Those that are attached, in the order in which the program imported their frameworks."""
        return tuple(self._backends.values())

    def install(self) -> None:
        """Attach to every framework that is imported already, and to the others when they are."""
        finder = _Finder(self._factories, self._imported)
        sys.meta_path.insert(0, finder)
        self._undo = standing("sys.meta_path", lambda: _take_out(finder))
        for framework in self._factories:
            if framework in sys.modules:
                # Another thread may be about to import it: this waits until it has.
                with contextlib.suppress(ImportError):
                    importlib.import_module(framework)
                self._imported(framework)

    def settle(self, problem: BaseException | None) -> None:
        """Let every backend answer what only the program's end shows."""
        for framework, backend in list(self._backends.items()):
            try:
                backend.settle(problem)
            except Exception as wrong:
                self._witness.failed(f"{framework}.settle", wrong)

    def remove(self) -> None:
        """Detach every backend and take the finder out; calling it twice is harmless."""
        if self._undo is not None:
            self._undo()
            self._undo = None
        with self._lock:
            backends, self._backends = self._backends, {}
        for framework, backend in backends.items():
            try:
                backend.detach()
            except Exception as wrong:
                self._witness.failed(f"{framework}.detach", wrong)

    def _imported(self, framework: str) -> None:
        with self._lock:
            if self._undo is None or framework in self._tried:
                return
            self._tried.add(framework)
        module = sys.modules.get(framework)
        if module is None:
            return
        backend: Backend | None = None
        try:
            _mark_library(module)
            backend = backend_of(framework, self._factories)
            version = backend.version()
            if is_older(version, backend.oldest):
                self._witness.declined(_too_old(framework, version, backend.oldest))
                return
            backend.attach(self._witness)
        except BaseException as problem:
            # The program goes on without us; only what is the user's own, an interrupt, reaches it.
            if backend is not None:
                with contextlib.suppress(Exception):
                    backend.detach()
            if not isinstance(problem, Exception):
                raise
            self._witness.failed(f"{framework}.attach", problem)
            return
        self._backends[framework] = backend
        if self._on_attached is not None:
            self._on_attached(framework, version)


def is_older(version: str, oldest: tuple[int, int]) -> bool:
    """Whether a version is older than a release; one that cannot be read counts as new."""
    found = re.match(r"(\d+)\.(\d+)", version)
    return found is not None and (int(found[1]), int(found[2])) < oldest


def _too_old(framework: str, version: str, oldest: tuple[int, int]) -> Text:
    values: dict[str, str | int | float] = {"framework": framework, "version": version}
    return Text("closing/too-old", values | {"oldest": ".".join(map(str, oldest))})


class _Finder:
    """Finds what the other finders find, and learns when it has been loaded."""

    def __init__(self, wanted: Mapping[str, str], imported: Callable[[str], None]) -> None:
        self._wanted = wanted
        self._imported = imported

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname not in self._wanted:
            return None
        for finder in list(sys.meta_path):
            find = None if finder is self else getattr(finder, "find_spec", None)
            spec: ModuleSpec | None = find(fullname, path, target) if find is not None else None
            if spec is not None:
                _tell_when_loaded(spec.loader, lambda: self._imported(fullname))
                return spec
        return None


def _tell_when_loaded(loader: Any, loaded: Callable[[], None]) -> None:
    original = getattr(loader, "exec_module", None)
    if original is None:
        return

    def exec_module(module: ModuleType) -> None:
        put_back()
        original(module)
        loaded()

    def put_back() -> None:
        with contextlib.suppress(AttributeError):
            del loader.exec_module

    # A loader without a dictionary of its own is left alone: such are the built-in ones, which hold no framework.
    with contextlib.suppress(AttributeError, TypeError):
        loader.exec_module = _as_import_machinery(exec_module)


def _as_import_machinery(function: Callable[[ModuleType], None]) -> Callable[[ModuleType], None]:
    """The function under the name of Python's own loader.

    Python takes the frames of its import machinery out of the traceback of an import that fails, but only where they stand
    together: a frame of another file among them, and the program's users would see them all.
    """
    assert isinstance(function, FunctionType)
    function.__code__ = function.__code__.replace(co_filename=_IMPORT_MACHINERY)
    return function


def _mark_library(module: ModuleType) -> None:
    """Whatever folder the framework runs from, its code is not the user's."""
    file = getattr(module, "__file__", None)
    if file:
        mark_library(os.path.dirname(file))


def _take_out(finder: _Finder) -> None:
    with contextlib.suppress(ValueError):
        sys.meta_path.remove(finder)
