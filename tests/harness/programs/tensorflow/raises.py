"""A missing gradient that ends the program with an error of the framework."""

import keras
import tensorflow as tf

keras.utils.set_random_seed(1)
model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)])
optimizer = keras.optimizers.SGD(0.1)


def train(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.stop_gradient(model(x)))
    gradients = tape.gradient(loss, model.trainable_variables)
    print("missing", [g is None for g in gradients])
    optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))


train(tf.ones((2, 3)))
print("not reached")
