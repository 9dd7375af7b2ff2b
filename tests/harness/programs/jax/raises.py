"""A question that ends the program with an error of the framework."""

import jax
import jax.numpy as jnp
import numpy as np


def loss(params):
    return jnp.sum(np.sort(np.asarray(params["w"])))


def train(params):
    return jax.grad(loss)(params)


train({"w": jnp.ones(3)})
print("not reached")
