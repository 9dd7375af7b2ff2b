"""A loop with random numbers, an optimizer and a healthy gradient: every bit of it is printed."""

import hashlib
import random

import keras
import numpy as np
import tensorflow as tf

print("random", float(np.random.default_rng(3).normal()).hex())
keras.utils.set_random_seed(7)
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(8, activation="relu"), keras.layers.Dense(1)])
optimizer = keras.optimizers.Adam(0.01)
x, y = tf.random.normal((16, 4)), tf.random.uniform((16, 1))

for step in range(3):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(model(x, training=True) - y))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
    print(step, float(loss).hex())

for variable in model.trainable_variables:
    print(variable.path, hashlib.sha256(variable.numpy().tobytes()).hexdigest())
print("random", random.random(), np.random.random().hex(), float(tf.random.normal(())).hex())
