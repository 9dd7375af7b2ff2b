import jax
import jax.numpy as jnp

params = {"x": jnp.array([0.5, -1.0, 2.0]), "w": jnp.array([1.0, 2.0, 3.0])}


def paused(function):
    return lambda value: jax.lax.stop_gradient(function(value))  # cut


def loss(params):
    doubled = params["x"] * 2.0
    h = paused(jnp.tanh)(doubled)
    return jnp.sum(h * params["w"])


grads = jax.grad(loss)(params)
print("x", float(jnp.linalg.norm(grads["x"])))
print("w", float(jnp.linalg.norm(grads["w"])))
