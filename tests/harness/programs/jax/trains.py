"""A loop with random numbers, an optimizer and a healthy gradient: every bit of it is printed."""

import hashlib
import random

import jax
import jax.numpy as jnp
import numpy as np

random.seed(1)
np.random.seed(1)
keys = jax.random.split(jax.random.key(7), 3)
params = {"w": jax.random.normal(keys[0], (4, 1)), "b": jnp.zeros(1)}
x, y = jax.random.normal(keys[1], (16, 4)), jax.random.uniform(keys[2], (16, 1))


def loss(params):
    print("calling loss")
    return jnp.mean((jnp.tanh(x @ params["w"]) + params["b"] - y) ** 2)


compiled = jax.jit(jax.value_and_grad(loss))
for step in range(3):
    value, grads = (compiled if step else jax.value_and_grad(loss))(params)
    params = jax.tree.map(lambda p, g: p - 0.1 * g, params, grads)
    print(step, float(value).hex())

for name, value in params.items():
    print(name, hashlib.sha256(np.asarray(value).tobytes()).hexdigest())
print("random", random.random(), np.random.random().hex(), compiled._cache_size())
