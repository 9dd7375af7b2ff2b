"""A compiled step: traced as often as without us, and of the same result."""

import tensorflow as tf

traced = []
w = tf.Variable([1.0, 2.0, 3.0])
lost = tf.Variable([3.0, 2.0, 1.0])


@tf.function
def step(x, flag):
    traced.append(flag)
    print("tracing", flag)
    with tf.GradientTape() as tape:
        h = tf.cond(flag, lambda: x * w, lambda: x - w)
        loss = tf.reduce_sum(h * tf.stop_gradient(lost))
    gradients = tape.gradient(loss, [w, lost])
    w.assign_sub(0.1 * gradients[0])
    return loss, [g is None for g in gradients]


for number in range(4):
    loss, missing = step(tf.fill((3,), float(number)), tf.constant(number % 2 == 0))
    print(number, float(loss).hex(), [bool(m) for m in missing])
print("traced", len(traced), [value.hex() for value in w.numpy().astype(float).tolist()])
