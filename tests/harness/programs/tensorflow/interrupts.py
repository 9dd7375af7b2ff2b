"""The user interrupts the program, and it says so."""

import os
import signal

import tensorflow as tf

w = tf.Variable(2.0)
try:
    for step in range(10):
        with tf.GradientTape() as tape:
            loss = tf.square(tf.stop_gradient(w))
        print(step, tape.gradient(loss, w))
        if step == 2:
            os.kill(os.getpid(), signal.SIGINT)
except KeyboardInterrupt:
    print("interrupted")
raise KeyboardInterrupt
