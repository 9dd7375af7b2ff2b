"""Lines with no gradient, and the examples that are shown for them: `⟦` and `⟧` enclose the place of the cut."""

from __future__ import annotations

from dataclasses import dataclass

from gradwhy.flow import Span


@dataclass(frozen=True, slots=True)
class Worked:
    framework: str
    line: str
    example: str
    made: str
    """What the example makes that has a gradient."""

    @property
    def text(self) -> str:
        return f"{HEADS[self.framework]}{self.line.replace('⟦', '').replace('⟧', '')}\n"

    def place(self, file: str) -> Span:
        number = HEADS[self.framework].count("\n") + 1
        start = self.line.index("⟦")
        return Span(file, number, start + 1, number, self.line.index("⟧"))


HEADS = {
    "tensorflow": "import tensorflow as tf\n",
    "torch": "import torch\nfrom torch import nn\n",
    "jax": "import jax\nimport jax.numpy as jnp\n",
}

WORKED = (
    Worked(
        "tensorflow",
        "kept = tf.cast(⟦scores > limit⟧, tf.float32)",
        "kept = tf.sigmoid((scores - limit) / 0.1)",
        "kept",
    ),
    Worked(
        "tensorflow",
        "on = tf.cast(⟦tf.less(scores, 0.5)⟧, scores.dtype)",
        "on = tf.sigmoid((0.5 - scores) / 0.1)",
        "on",
    ),
    Worked(
        "tensorflow",
        "y = 2.0 * tf.where(⟦scores > 0⟧, 1.0, 0.0) + 1.0",
        "y = 2.0 * (tf.sigmoid(scores / 0.1)) + 1.0",
        "y",
    ),
    Worked(
        "tensorflow",
        "y = tf.where(⟦scores > limit⟧, a, b)",
        "y = tf.sigmoid((scores - limit) / 0.1) * a + (1 - tf.sigmoid((scores - limit) / 0.1)) * b",
        "y",
    ),
    Worked(
        "tensorflow",
        "q = ⟦tf.round(scores)⟧ / 255.0",
        "q = (scores + tf.stop_gradient(tf.round(scores) - scores)) / 255.0",
        "q",
    ),
    Worked(
        "tensorflow",
        "q = ⟦tf.math.floor(scores * 255.0)⟧ / 255.0",
        "x = scores * 255.0\nq = (x + tf.stop_gradient(tf.math.floor(x) - x)) / 255.0",
        "q",
    ),
    Worked(
        "tensorflow",
        "best = ⟦tf.argmax(logits, axis=1)⟧",
        "weights = tf.nn.softmax(logits, axis=1)  # one weight for each choice, instead of the choice",
        "weights",
    ),
    Worked(
        "tensorflow",
        "right = tf.reduce_mean(tf.cast(tf.equal(⟦tf.argmax(logits, axis=1)⟧, labels), tf.float32))",
        "# `logits` before any softmax\n"
        "loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))",
        "loss",
    ),
    Worked(
        "tensorflow",
        "m = tf.reduce_mean(⟦tf.keras.metrics.sparse_categorical_accuracy(labels, logits)⟧)",
        "loss = tf.keras.losses.sparse_categorical_crossentropy(labels, logits)",
        "loss",
    ),
    Worked(
        "tensorflow",
        "counts = tf.cast(⟦tf.histogram_fixed_width(scores, [0.0, 1.0], nbins=5)⟧, tf.float32)",
        "centers = tf.linspace(0.0, 1.0, 5)\n"
        "width = centers[1] - centers[0]\n"
        "x = tf.reshape(scores, [-1, 1])\n"
        "counts = tf.cast(tf.reduce_sum(tf.exp(-(((x - centers) / width) ** 2)), axis=0), tf.float32)",
        "counts",
    ),
    Worked("torch", "kept = (⟦scores > limit⟧).float()", "kept = torch.sigmoid((scores - limit) / 0.1)", "kept"),
    Worked("torch", "q = ⟦scores.round()⟧ / 255", "q = (scores + (scores.round() - scores).detach()) / 255", "q"),
    Worked("torch", "q = ⟦torch.sign(scores)⟧", "q = scores + (torch.sign(scores) - scores).detach()", "q"),
    Worked(
        "torch",
        "best = ⟦logits.argmax(dim=1)⟧",
        "weights = torch.softmax(logits, dim=1)  # one weight for each choice, instead of the choice",
        "weights",
    ),
    Worked(
        "torch",
        "right = (⟦logits.argmax(1)⟧ == labels).float().mean()",
        "# `logits` before any softmax\nloss = torch.nn.functional.cross_entropy(logits, labels)",
        "loss",
    ),
    Worked(
        "torch",
        "counts = ⟦torch.histc(scores, bins=5, min=0, max=1)⟧",
        "centers = torch.linspace(0, 1, 5)\n"
        "width = centers[1] - centers[0]\n"
        "x = scores.reshape(-1, 1)\n"
        "counts = torch.sum(torch.exp(-(((x - centers) / width) ** 2)), dim=0)",
        "counts",
    ),
    Worked("jax", "kept = (⟦scores > limit⟧).astype(float)", "kept = jax.nn.sigmoid((scores - limit) / 0.1)", "kept"),
    Worked("jax", "q = ⟦jnp.round(scores)⟧", "q = scores + jax.lax.stop_gradient(jnp.round(scores) - scores)", "q"),
    Worked(
        "jax",
        "best = values[⟦jnp.argmax(logits)⟧]",
        "weights = jax.nn.softmax(logits, axis=-1)  # one weight for each choice, instead of the choice",
        "weights",
    ),
    Worked(
        "jax",
        "right = jnp.mean(⟦jnp.argmax(logits, axis=1)⟧ == labels)",
        "# `logits` before any softmax\n"
        "loss = -jax.numpy.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], axis=1).mean()",
        "loss",
    ),
)

PROGRAMS = {
    "tensorflow": """
import tensorflow as tf
for code, made in EXAMPLES:
    with tf.GradientTape() as tape:
        known = dict(tf=tf, scores=tf.constant([0.2, 0.7]), logits=tf.constant([[0.2, 0.7], [0.1, 0.4]]),
                     labels=tf.constant([0, 1]), limit=0.5, a=1.0, b=3.0)
        tape.watch([known["scores"], known["logits"]])
        exec(code, known)
        target = tf.reduce_sum(known[made] ** 2)
    got = tape.gradient(target, [known["scores"], known["logits"]])
    print(made, any(g is not None and bool(tf.reduce_any(g != 0)) for g in got))
""",
    "torch": """
import torch
for code, made in EXAMPLES:
    known = dict(torch=torch, scores=torch.tensor([0.2, 0.7], requires_grad=True),
                 logits=torch.tensor([[0.2, 0.7], [0.1, 0.4]], requires_grad=True), labels=torch.tensor([0, 1]), limit=0.5)
    exec(code, known)
    (known[made] ** 2).sum().backward()
    got = [known["scores"].grad, known["logits"].grad]
    print(made, any(g is not None and bool((g != 0).any()) for g in got))
""",
    "jax": """
import jax, jax.numpy as jnp
def total(scores, logits, code, made):
    known = dict(jax=jax, jnp=jnp, scores=scores, logits=logits, labels=jnp.array([0, 1]), limit=0.5)
    exec(code, known)
    return (known[made] ** 2).sum()
for code, made in EXAMPLES:
    scores, logits = jnp.array([0.2, 0.7]), jnp.array([[0.2, 0.7], [0.1, 0.4]])
    got = jax.grad(lambda *given: total(*given, code, made), argnums=(0, 1))(scores, logits)
    print(made, any(bool((g != 0).any()) for g in got))
""",
}
"""Programs that run every one of `EXAMPLES`, the code and the name of what it makes, and print whether a gradient arrives."""
