"""The fixes for JAX: the changed program asks the same question and gets its gradient."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from gradwhy.diagnose import explain
from gradwhy.fix.patch import changed_by
from gradwhy.fix.proposals import proposals
from gradwhy.fix.situation import Situation
from gradwhy.flow import Applicability, Status
from gradwhy.source.files import absolute_path

Observe = Callable[[str], list]
P = "p = {'a': jnp.array(0.5), 'b': jnp.array(2.0)}\n"

MENDED = {
    "closed-over": (
        "class Model:\n    def __init__(self):\n        self.p = {'a': jnp.array(0.5)}\n"
        "    def loss(self, p):\n        return self.p['a'] ** 2\n"
        "model = Model()\njax.grad(model.loss)(model.p)\n",
        "        return p['a'] ** 2\n",
        Applicability.SAFE,
    ),
    "more than the loss": (
        P + "def loss(p):\n    return p['a'] * p['b'], {'seen': p['a']}\ng = jax.grad(loss)(p)\n",
        "g, _ = jax.grad(loss, has_aux=True)(p)\n",
        Applicability.SAFE,
    ),
    "more than the loss, with its value": (
        P + "def loss(p):\n    return p['a'] * p['b'], {'seen': p['a']}\nvalue, g = jax.value_and_grad(loss)(p)\n",
        "(value, _), g = jax.value_and_grad(loss, has_aux=True)(p)\n",
        Applicability.SAFE,
    ),
    "NumPy": (
        P + "def loss(p):\n    return np.sum(np.exp(p['a'])) * p['b']\njax.grad(loss)(p)\n",
        "    return jnp.sum(jnp.exp(p['a'])) * p['b']\n",
        Applicability.UNSAFE,
    ),
}


def mended(observe: Observe, listening: object, text: str) -> tuple[str, Applicability] | None:
    """The program after the first fix for it, as the user would have it."""
    try:
        observe(text)
    except Exception:
        # JAX refuses what the fix is for.
        pass
    told = listening.told[-1]  # type: ignore[attr-defined]
    for finding in explain(told.question, told.graph, 0):
        content = {edit: Path(absolute_path(edit)).read_bytes() for edit in [finding.place.file]}
        found, _ = proposals(Situation(finding, told.question, content.get))
        if found:
            after = changed_by(content[finding.place.file], found[0].edits).decode()
            return after.split("import numpy as np\n", 1)[1], found[0].applicability
    return None


@pytest.mark.parametrize("name", MENDED)
def test_the_changed_program_gets_its_gradient(name: str, observe: Observe, listening: object) -> None:
    text, line, grade = MENDED[name]
    fixed = mended(observe, listening, text)
    assert fixed is not None and line in fixed[0] and fixed[1] is grade
    assert set(observe(fixed[0])[-1].statuses.values()) == {Status.OK}


@pytest.mark.parametrize(
    "text",
    [
        "w = jnp.array(0.5)\ndef helper():\n    return w ** 2\ndef loss(v):\n    return helper()\njax.grad(loss)(w)\n",
        P + "def loss(p):\n    return p['a'], p['b']\nprint(jax.grad(loss)(p))\n",
        P + "def loss(p):\n    return np.histogram(p['a'])[0] * p['b']\njax.grad(loss)(p)\n",
    ],
    ids=["the helper is not given it", "the answer has no name", "jax.numpy means something else"],
)
def test_no_change_is_offered_that_a_person_has_to_decide(text: str, observe: Observe, listening: object) -> None:
    assert mended(observe, listening, text) is None
