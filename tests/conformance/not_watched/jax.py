import jax
import jax.numpy as jnp

x = jnp.array([0.5, -1.0, 2.0])
w = jnp.array([1.0, 2.0, 3.0])


def loss(given, w):
    h = jnp.tanh(x * 2.0)  # place
    return jnp.sum(h * w)


dx, dw = jax.grad(loss, argnums=(0, 1))(x, w)  # place
print("x", float(jnp.linalg.norm(dx)))
print("w", float(jnp.linalg.norm(dw)))
