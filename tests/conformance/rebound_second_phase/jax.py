import jax
import jax.numpy as jnp

params = {"x": jnp.array([0.5, -1.0, 2.0]), "w": jnp.array([1.0, 2.0, 3.0])}  # place


def loss(params, step):
    scale = params["x"] if step < 2 else jnp.ones(3)  # place
    return jnp.sum(jnp.square(scale * params["w"]))  # place


for step in range(4):
    grads = jax.grad(loss)(params, step)  # place
    params = jax.tree.map(lambda p, g: p - 0.1 * g, params, grads)
    print("x", float(jnp.linalg.norm(grads["x"])))
    print("w", float(jnp.linalg.norm(grads["w"])))
