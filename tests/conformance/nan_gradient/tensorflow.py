import tensorflow as tf

x = tf.Variable([0.0, 0.0, 0.0])
w = tf.Variable([1.0, 2.0, 3.0])

with tf.GradientTape() as tape:
    h = tf.reduce_sum(tf.square(x))
    length = tf.sqrt(h)  # cut
    loss = length + tf.reduce_sum(w * w)

dx, dw = tape.gradient(loss, [x, w])
print("x", None if dx is None else float(tf.norm(dx)))
print("w", None if dw is None else float(tf.norm(dw)))
