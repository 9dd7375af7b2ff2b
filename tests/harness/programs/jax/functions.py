"""Own derivative rules, loops, vmap, and functions that look at their arguments."""

import functools

import jax
import jax.numpy as jnp


@jax.custom_vjp
def doubled(x):
    print("forward", type(x).__name__)
    return 2 * x


doubled.defvjp(lambda x: (2 * x, x), lambda x, gradient: (print("backward") or 2 * gradient,))


def branches(params):
    """Takes another branch when its argument is concrete."""
    try:
        return params["x"] ** int(params["n"])
    except jax.errors.ConcretizationTypeError:
        print("traced")
        return params["x"] * 0.5


print(float(jax.grad(lambda x: doubled(x) ** 2)(3.0)).hex())
print(jax.grad(branches, allow_int=True)({"x": 2.0, "n": 3})["x"])
print(jax.jit(jax.grad(lambda x: branches({"x": x, "n": 3})))(2.0))
print([float(v).hex() for v in jax.vmap(jax.grad(jnp.sin))(jnp.arange(3.0))])
print(jax.hessian(lambda x: jnp.sum(x**3))(jnp.arange(2.0)).tolist())
print(jax.jacfwd(jnp.square)(jnp.arange(2.0)).tolist(), jax.jacrev(jnp.square)(jnp.arange(2.0)).tolist())

value, pull = jax.vjp(lambda a, b: jnp.round(a) * b, 1.5, 2.0)
print(float(value), [float(g) for g in pull(1.0)])
grad = functools.partial(jax.grad, argnums=(0, 1))
print([float(g) for g in grad(lambda a, b: jax.lax.stop_gradient(a) * b)(1.0, 2.0)])


def scanned(x):
    carried, _ = jax.lax.scan(lambda c, _: (jnp.sin(c) * x, c), x, None, length=4)
    return carried


print(float(jax.grad(scanned)(0.5)).hex(), float(jax.grad(jax.checkpoint(scanned))(0.5)).hex())
