"""Gradients in threads, one of which raises."""

import threading

import jax

results = {}


def work(number):
    gradient = jax.grad(lambda w: (w if number else jax.lax.stop_gradient(w)) ** 2)(float(number + 1))
    results[number] = float(gradient).hex()


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
