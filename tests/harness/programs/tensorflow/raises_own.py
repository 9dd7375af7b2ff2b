"""An error of the program's own, with a cause, deep in its own functions."""

import tensorflow as tf


class Unusable(Exception):
    pass


def loss_of(x):
    try:
        return tf.matmul(x, x)
    except tf.errors.InvalidArgumentError as problem:
        raise Unusable("shapes do not fit") from problem


w = tf.Variable(tf.ones((2, 3)))
with tf.GradientTape() as tape:
    loss = loss_of(w)
print("not reached")
