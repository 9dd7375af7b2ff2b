"""The mask is applied while the tape records: every gradient arrives."""

import tensorflow as tf

tf.keras.utils.set_random_seed(5)
x = tf.Variable([[1., 2., 3.]])
mask = tf.constant([0., 1., 0.], shape=(3, 1))
layer = tf.keras.layers.Dense(2, activation="relu")

with tf.GradientTape() as tape:
    x_ = x @ mask
    y = layer(x_)
    loss = tf.reduce_mean(y ** 2)

(dkernel, dbias), dx = tape.gradient(loss, [layer.trainable_variables, x])
for name, g in [("kernel", dkernel), ("bias", dbias), ("x", dx)]:
    print(name, None if g is None else float(tf.norm(g)))
