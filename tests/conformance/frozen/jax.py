import jax
import jax.numpy as jnp

params = {"x": jnp.array([0.5, -1.0, 2.0]), "w": jnp.array([1.0, 2.0, 3.0])}


def loss(params):
    params = dict(params, x=jax.lax.stop_gradient(params["x"]))  # cut
    h = jnp.tanh(params["x"] * 2.0)
    return jnp.sum(h * params["w"])


grads = jax.grad(loss)(params)
print("x", float(jnp.linalg.norm(grads["x"])))
print("w", float(jnp.linalg.norm(grads["w"])))
