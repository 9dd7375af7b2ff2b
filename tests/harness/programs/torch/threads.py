"""Backward passes in threads, one of which raises."""

import threading

import torch

results = {}


def work(number):
    w = torch.tensor([1.0, float(number)], requires_grad=True)
    v = torch.tensor([2.0, 1.0], requires_grad=True)
    loss = torch.sum(v * (w if number else w.detach()))
    loss.backward()
    results[number] = None if w.grad is None else [value.hex() for value in w.grad.tolist()]


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
