import jax
import jax.numpy as jnp

params = {"x": jnp.array([0.5, -1.0, 2.0]), "w": jnp.array([1.0, 2.0, 3.0])}


def loss(params):
    h = jnp.tanh(params["x"] * 2.0)
    best = jnp.argmax(h)  # cut
    chosen = jax.nn.one_hot(best, 3)
    return jnp.sum(chosen * params["w"])


grads = jax.grad(loss)(params)
print("x", float(jnp.linalg.norm(grads["x"])))
print("w", float(jnp.linalg.norm(grads["w"])))
