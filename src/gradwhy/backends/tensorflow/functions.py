"""Graphs that TensorFlow builds: which function name runs which graph, and what was open around the building."""

from __future__ import annotations

import weakref
from typing import Any

from gradwhy.backends.patches import Hooks
from gradwhy.backends.tensorflow.record import Recorder


class Functions:
    """The graphs of a run by the names under which they are called."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self._graphs: dict[str, weakref.ref[Any]] = {}

    def attach(self, hooks: Hooks, modules: dict[str, Any]) -> None:
        hooks.wrap(modules["atomic_function"], "from_func_graph", "tensorflow.function", after=self._named)
        hooks.wrap(
            modules["func_graph"],
            "func_graph_from_py_func",
            "tensorflow.trace",
            before=self._tracing,
            after=self._traced,
            raised=self._traced,
        )

    def graph(self, name: str | bytes) -> Any:
        """The graph that runs under `name`, None where it is gone or was never seen."""
        known = self._graphs.get(name.decode() if isinstance(name, bytes) else name)
        return known() if known is not None else None

    def _named(self, token: Any, result: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        name = args[0] if args else kwargs["name"]
        graph = args[1] if len(args) > 1 else kwargs["graph"]
        self._graphs[name.decode() if isinstance(name, bytes) else str(name)] = weakref.ref(graph)

    def _tracing(self, args: tuple[Any, ...], kwargs: Any) -> bool:
        state = self.recorder.state
        state.bases = (*state.bases, state.scopes)
        return True

    def _traced(self, token: Any, result: Any, args: tuple[Any, ...], kwargs: Any) -> None:
        if token:
            state = self.recorder.state
            state.bases = state.bases[:-1]
