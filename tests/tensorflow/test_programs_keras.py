"""Programs that train with Keras: what `fit`, a model's own training step and the optimizers say is answered at the right line."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from forkserver import ForkServer
from programs import Program, Runs, Said, faults_of

HEAD = """
import numpy as np
import tensorflow as tf
import keras

keras.utils.set_random_seed(3)
x = np.random.default_rng(0).normal(size=(16, 4)).astype("float32")
y = x.sum(axis=1, keepdims=True)
"""

FIT = (
    HEAD
    + """
inputs = keras.Input((4,))
hidden = keras.layers.Dense(3, activation="tanh", name="encoder")(inputs)
rounded = keras.layers.Lambda(lambda h: tf.round(h))(hidden)  # cut
model = keras.Model(inputs, keras.layers.Dense(1, name="head")(rounded))
model.compile("sgd", "mse", run_eagerly=EAGERLY)
model.fit(x, y, epochs=2, batch_size=8, verbose=0)
print("done")
"""
)

OWN_STEP = (
    HEAD
    + """
class Forecast(keras.Model):
    def __init__(self):
        super().__init__()
        self.encoder = keras.layers.Dense(3, activation="tanh")
        self.head = keras.layers.Dense(1)

    def call(self, inputs):
        return self.head(tf.stop_gradient(self.encoder(inputs)))  # cut

    def train_step(self, data):
        inputs, wanted = data
        with tf.GradientTape() as tape:
            found = self(inputs, training=True)
            loss = tf.reduce_mean((found - wanted) ** 2)
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))
        return {"loss": loss}

model = Forecast()
model.compile(optimizer="sgd", run_eagerly=EAGERLY)
model.fit(x, y, epochs=2, batch_size=8, verbose=0)
print("done")
"""
)

NO_GRADIENTS = (
    HEAD
    + """
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
optimizer = keras.optimizers.SGD(0.1)
found = model(x)  # cut
with tf.GradientTape() as tape:
    loss = tf.reduce_mean((found - y) ** 2)
gradients = tape.gradient(loss, model.trainable_variables)
optimizer.apply_gradients(zip(gradients, model.trainable_variables))
"""
)

SOME_MISSING = (
    HEAD
    + """
encoder, head = keras.layers.Dense(3), keras.layers.Dense(1)
optimizer = keras.optimizers.SGD(0.1)
with tf.GradientTape() as tape:
    hidden = encoder(x)
    found = head(hidden.numpy())  # cut
    loss = tf.reduce_mean((found - y) ** 2)
weights = encoder.trainable_variables + head.trainable_variables
gradients = tape.gradient(loss, weights)
optimizer.apply_gradients(zip(gradients, weights))
print("done")
"""
)

UNKNOWN_VARIABLE = (
    HEAD
    + """
body, late = keras.layers.Dense(3), keras.layers.Dense(1)
optimizer = keras.optimizers.Adam(0.1)
hidden = body(x)
optimizer.build(body.trainable_variables)
with tf.GradientTape() as tape:
    loss = tf.reduce_mean((late(body(x)) - y) ** 2)
weights = body.trainable_variables + late.trainable_variables
gradients = tape.gradient(loss, weights)
optimizer.apply_gradients(zip(gradients, weights))  # cut
"""
)

MOVING_STATISTICS = (
    HEAD
    + """
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3), keras.layers.BatchNormalization(name="norm")])
with tf.GradientTape() as tape:
    loss = tf.reduce_mean(model(x, training=True) ** 3)
gradients = tape.gradient(loss, model.variables)  # cut
print([g is None for g in gradients])
"""
)

UNUSED_HEAD = (
    HEAD
    + """
trunk, value, policy = keras.layers.Dense(3), keras.layers.Dense(1), keras.layers.Dense(2)
policy.build((None, 3))  # cut
optimizer = keras.optimizers.SGD(0.1)
for step in range(4):
    with tf.GradientTape() as tape:
        hidden = trunk(x)
        loss = tf.reduce_mean((value(hidden) - y) ** 2)
    weights = trunk.trainable_variables + value.trainable_variables + policy.trainable_variables
    gradients = tape.gradient(loss, weights)
    optimizer.apply_gradients((g, w) for g, w in zip(gradients, weights) if g is not None)
print("done")
"""
)

ENCODER = ("self.encoder.bias", "self.encoder.kernel")
ROUNDED = (Said("loud", "non-differentiable-op", ("model.layers[1].bias", "model.layers[1].kernel")),)
STATISTICS = ("model.layers[1].moving_mean", "model.layers[1].moving_variance")
PROGRAMS = [
    Program("fit", FIT.replace("EAGERLY", "False"), ROUNDED),
    Program("fit-eagerly", FIT.replace("EAGERLY", "True"), ROUNDED),
    Program("own-step", OWN_STEP.replace("EAGERLY", "False"), (Said("loud", "detached", ENCODER),)),
    Program("own-step-eagerly", OWN_STEP.replace("EAGERLY", "True"), (Said("loud", "detached", ENCODER),)),
    Program(
        "no-gradients",
        NO_GRADIENTS,
        (Said("error", "outside-tape", ("model.layers[0].bias", "model.layers[0].kernel")),),
        "ValueError: No gradients provided for any variable.",
    ),
    Program("some-missing", SOME_MISSING, (Said("loud", "left-framework", ("encoder.bias", "encoder.kernel")),)),
    Program(
        "unknown-variable",
        UNKNOWN_VARIABLE,
        (Said("error", "unregistered", ("late.bias", "late.kernel")),),
        "ValueError: Unknown variable: <Variable path=dense_1/kernel",
    ),
    Program("moving-statistics", MOVING_STATISTICS, (Said("note", "frozen", STATISTICS),)),
    Program("unused-head", UNUSED_HEAD, (Said("note", "unused", ("policy.bias", "policy.kernel")),)),
]


@pytest.fixture(scope="module")
def runs(server_of: Callable[[str], ForkServer]) -> Runs:
    return Runs(server_of("tensorflow"), PROGRAMS)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.id)
def test_program_is_told_what_happened(program: Program, runs: Runs) -> None:
    assert faults_of(program, runs.of(program)) == []
