import jax
import jax.numpy as jnp

params = {"x": jnp.array([0.0, 0.0, 0.0]), "w": jnp.array([1.0, 2.0, 3.0])}


def loss(params):
    h = jnp.sum(jnp.square(params["x"]))
    length = jnp.sqrt(h)  # cut
    return length + jnp.sum(params["w"] * params["w"])


grads = jax.grad(loss)(params)
print("x", float(jnp.linalg.norm(grads["x"])))
print("w", float(jnp.linalg.norm(grads["w"])))
