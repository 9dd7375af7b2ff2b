"""The fixture that refuses a patch left behind, seen to fail."""

from __future__ import annotations

from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]


def outcomes_of(pytester: pytest.Pytester, test: str) -> dict[str, int]:
    pytester.makeconftest((TESTS / "conftest.py").read_text(encoding="utf-8"))
    pytester.makeini(f"[pytest]\npythonpath = {TESTS / 'support'}")
    pytester.makepyfile(test)
    # A process of its own: the list of open patches is one for each process, and this test has the fixture, too.
    return pytester.runpytest_subprocess("-p", "no:cacheprovider").parseoutcomes()


def test_a_test_that_leaves_a_patch_behind_fails(pytester: pytest.Pytester) -> None:
    outcomes = outcomes_of(
        pytester,
        """
        from gradwhy.backends.patches import patch

        class Framework:
            answer = 1

        def test_patches_and_leaves():
            patch(Framework, "answer", 2)

        def test_next_one_is_not_blamed():
            assert Framework.answer == 2
        """,
    )
    assert outcomes == {"passed": 2, "errors": 1}


def test_a_test_that_undoes_its_patch_passes(pytester: pytest.Pytester) -> None:
    outcomes = outcomes_of(
        pytester,
        """
        from gradwhy.backends.patches import patch

        class Framework:
            answer = 1

        def test_patches_and_undoes():
            patch(Framework, "answer", 2)()
        """,
    )
    assert outcomes == {"passed": 1}
