"""tf.data with a heavy image map that runs one call at a time. --fix: num_parallel_calls=2 instead of 1."""
import os
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow as tf

from pace import Pace, options

tf.config.threading.set_intra_op_parallelism_threads(1)


def distort(image, label):
    image = tf.image.convert_image_dtype(image, tf.float32)
    image = tf.image.random_hue(tf.image.random_saturation(image, 0.6, 1.4), 0.1)
    image = tf.image.resize(image, (96, 96), method="bicubic")
    image = tf.image.random_contrast(tf.image.random_flip_left_right(image), 0.7, 1.3)
    return tf.image.resize(image, (32, 32), antialias=True), label


def input_pipeline(calls):
    images = tf.cast(tf.random.stateless_uniform((64, 128, 128, 3), (1, 2), 0, 256, tf.int32), tf.uint8)
    labels = tf.range(64) % 10
    return (tf.data.Dataset.from_tensor_slices((images, labels)).cache().repeat()
            .map(distort, num_parallel_calls=calls).batch(8).prefetch(4))


class Net(tf.Module):
    def __init__(self):
        super().__init__()
        self.kernel = tf.Variable(tf.random.normal((5, 5, 3, 8), stddev=0.1))
        self.dense = tf.Variable(tf.random.normal((8, 10), stddev=0.1))

    @tf.function
    def train(self, x, y):
        with tf.GradientTape() as tape:
            h = tf.reduce_mean(tf.nn.relu(tf.nn.conv2d(x, self.kernel, 4, "VALID")), (1, 2))
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(y, h @ self.dense))
        for v, g in zip(self.trainable_variables, tape.gradient(loss, self.trainable_variables)):
            v.assign_sub(0.05 * g)
        return loss


if __name__ == "__main__":
    args = options()
    net = Net()
    pace = Pace(args.seconds)
    for x, y in input_pipeline(2 if args.fix else 1):
        net.train(x, y)
        if pace.over():
            break
    pace.report()
