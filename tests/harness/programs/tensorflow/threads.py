"""Tapes in threads, one of which raises."""

import threading

import tensorflow as tf

results = {}


def work(number):
    w = tf.Variable([1.0, float(number)])
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.square(w)) if number else tf.reduce_sum(tf.stop_gradient(w))
    gradient = tape.gradient(loss, w)
    results[number] = None if gradient is None else [float(g).hex() for g in gradient]


def fail():
    raise ValueError("in a thread")


threading.excepthook = lambda told: print("thread raised", told.exc_type.__name__, told.exc_value)
threads = [threading.Thread(target=work, args=(n,), name=f"worker {n}") for n in range(3)]
threads.append(threading.Thread(target=fail))
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(sorted(results.items()))
print(threading.current_thread().name, threading.active_count())
