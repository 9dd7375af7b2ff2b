import jax
import jax.numpy as jnp

params = {"x": jnp.array([0.5, -1.0, 2.0]), "w": jnp.array([1.0, 2.0, 3.0])}
memory = {}


def write(params):
    memory["h"] = jnp.tanh(params["x"] * 2.0)  # place


def loss(params):
    return jnp.sum(memory["h"] * params["w"])  # place


write(params)
grads = jax.grad(loss)(params)  # place
print("x", float(jnp.linalg.norm(grads["x"])))
print("w", float(jnp.linalg.norm(grads["w"])))
