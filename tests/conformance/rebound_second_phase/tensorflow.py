import tensorflow as tf

x = tf.Variable([0.5, -1.0, 2.0])  # place
w = tf.Variable([1.0, 2.0, 3.0])
optimizer = tf.keras.optimizers.SGD(0.1)

for step in range(4):
    with tf.GradientTape() as tape:
        scale = x if step < 2 else tf.constant([1.0, 1.0, 1.0])  # place
        loss = tf.reduce_sum(tf.square(scale * w))  # place
    dx, dw = tape.gradient(loss, [x, w])  # place
    optimizer.apply_gradients([(g, v) for g, v in [(dx, x), (dw, w)] if g is not None])
    print("x", None if dx is None else float(tf.norm(dx)))
    print("w", None if dw is None else float(tf.norm(dw)))
