"""A program that looks at the framework and at its own objects."""

import copy
import gc
import inspect
import pickle
import weakref

import numpy as np
import tensorflow as tf

print(tf.GradientTape.gradient.__name__, tf.GradientTape.gradient.__qualname__, tf.GradientTape.gradient.__module__)
print(inspect.signature(tf.GradientTape.gradient))
print(inspect.signature(tf.constant), inspect.signature(tf.convert_to_tensor))
print(inspect.isfunction(tf.constant), inspect.isclass(tf.Variable), callable(tf.stop_gradient))

x = tf.Variable([0.5, 1.5])
array = (x * 2.0).numpy()
print(type(array) is np.ndarray, array.dtype, array.flags.writeable, type(tf.constant(array)).__name__)
print(type(float(x[0])), type(x.numpy().tolist()[0]))
print(pickle.loads(pickle.dumps(array)).tolist(), copy.deepcopy(x).numpy().tolist())

with tf.GradientTape(persistent=True) as tape:
    y = tf.tanh(x)
    held = weakref.ref(y)
    loss = tf.reduce_sum(tf.constant(y.numpy()) * x)
print([float(g).hex() for g in tape.gradient(loss, x)], tape.gradient(y, x) is None, tape.watched_variables()[0] is x)
del y, tape, loss
gc.collect()
print("kept alive", held() is not None)
print(sorted(name for name in globals() if not name.startswith("_")))
