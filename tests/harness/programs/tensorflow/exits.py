"""The program leaves with a status of its own after a gradient was lost."""

import atexit
import sys

import tensorflow as tf

atexit.register(print, "at exit")
w = tf.Variable(2.0)
with tf.GradientTape() as tape:
    loss = tf.stop_gradient(w) * 2.0
if tape.gradient(loss, w) is None:
    sys.exit(3)
