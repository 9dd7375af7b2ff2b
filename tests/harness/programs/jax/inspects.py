"""A program that looks at the framework and at its own objects."""

import copy
import gc
import inspect
import pickle
import weakref

import jax
import jax.numpy as jnp
import numpy as np

print(jax.grad.__name__, jax.grad.__qualname__, jax.grad.__module__, inspect.isfunction(jax.grad))
print(list(inspect.signature(jax.grad).parameters), list(inspect.signature(jax.vjp).parameters))


def loss(x, scale=2.0):
    """The loss."""
    print(type(x).__name__, [frame.function for frame in inspect.stack() if frame.filename == __file__])
    return jnp.sum(jnp.tanh(x) * scale)


gradient_of = jax.grad(loss)
print(gradient_of.__name__, gradient_of.__doc__, inspect.signature(gradient_of), gradient_of.__wrapped__ is loss)
x = jnp.array([0.5, 1.5])
gradient = gradient_of(x, scale=3.0)
print([float(g).hex() for g in gradient], type(gradient).__name__, gradient.dtype)
print(pickle.loads(pickle.dumps(gradient)).tolist(), copy.deepcopy(x).tolist(), type(np.asarray(x)) is np.ndarray)
print(jax.make_jaxpr(gradient_of)(x))
held = weakref.ref(x)
del x, gradient
gc.collect()
print("kept alive", held() is not None)
print(sorted(name for name in globals() if not name.startswith("_")))
