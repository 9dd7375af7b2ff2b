import tensorflow as tf

x = tf.Variable([-0.5, -1.0, -2.0])
w = tf.Variable([1.0, 2.0, 3.0])

with tf.GradientTape() as tape:
    h = tf.nn.relu(x * 2.0)  # cut
    loss = tf.reduce_sum(h * 3.0) + tf.reduce_sum(w * w)

dx, dw = tape.gradient(loss, [x, w])
print("x", None if dx is None else float(tf.norm(dx)))
print("w", None if dw is None else float(tf.norm(dw)))
