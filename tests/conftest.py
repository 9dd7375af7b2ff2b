"""What every test stands under: marks by folder, and no patch left behind."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from forkserver import ForkServer
from gradwhy.backends.patches import open_patches

pytest_plugins = ["pytester"]

TESTS = Path(__file__).parent
FRAMEWORKS = ("tensorflow", "torch", "jax")


@pytest.fixture(autouse=True)
def no_patch_left_behind() -> Iterator[None]:
    """Fail a test that ends with a hook of ours still in place."""
    before = list(open_patches())
    yield
    left = list(open_patches())
    for label in before:
        if label in left:
            left.remove(label)
    if left:
        pytest.fail(f"left behind: {', '.join(left)}")


@pytest.fixture(scope="session")
def server_of() -> Iterator[Callable[[str], ForkServer]]:
    """The server that runs programs under a framework; started when first asked for."""
    servers: dict[str, ForkServer] = {}

    def server(framework: str) -> ForkServer:
        if framework not in servers:
            servers[framework] = ForkServer(framework)
        return servers[framework]

    yield server
    for started in servers.values():
        started.close()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave a framework's own tests uncollected where it is not installed or not wanted: their modules import it."""
    if collection_path.parent != TESTS or collection_path.name not in FRAMEWORKS:
        return None
    is_unwanted = config.getoption("markexpr") == "not frameworks"
    return True if is_unwanted or importlib.util.find_spec(collection_path.name) is None else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that need a framework, by their folder or by their parameter `framework`."""
    for item in items:
        if framework := _framework_of(item):
            item.add_marker(framework)
            item.add_marker("frameworks")
            if importlib.util.find_spec(framework) is None:
                item.add_marker(pytest.mark.skip(reason=f"{framework} is not installed"))


def _framework_of(item: pytest.Item) -> str | None:
    if item.path.is_relative_to(TESTS):
        folder = item.path.relative_to(TESTS).parts[0]
        if folder in FRAMEWORKS:
            return folder
    given = getattr(item, "callspec", None)
    framework = given.params.get("framework") if given else None
    return framework if framework in FRAMEWORKS else None
