import jax
import jax.numpy as jnp

params = {"x": jnp.array([0.5, -1.0, 2.0]), "w": jnp.array([1.0, 2.0, 3.0])}


def loss(params):
    h = jnp.tanh(params["x"] * 2.0)
    fixed = jax.lax.stop_gradient(h)  # cut
    return jnp.sum(fixed * params["w"])


grads = jax.grad(loss)(params)
print("x", float(jnp.linalg.norm(grads["x"])))
print("w", float(jnp.linalg.norm(grads["w"])))
