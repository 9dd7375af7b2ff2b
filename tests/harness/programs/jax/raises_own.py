"""An error of the program's own, with a cause, inside the function that is differentiated."""

import jax
import jax.numpy as jnp


class Unusable(Exception):
    pass


def loss(w):
    try:
        return jnp.matmul(w, w)
    except TypeError as problem:
        raise Unusable("shapes do not fit") from problem


jax.grad(loss)(jnp.ones((2, 3)))
print("not reached")
