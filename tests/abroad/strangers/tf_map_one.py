"""Pictures augmented in tf.data, one after another."""
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import tensorflow as tf

from pace import Pace, options


def augment(index):
    image = tf.random.stateless_uniform((160, 160, 3), [index, 1])
    image = tf.image.resize(image, (96, 96), method="bicubic")
    image = tf.image.adjust_hue(image, 0.1)
    image = tf.image.adjust_saturation(image, 1.2)
    return tf.image.per_image_standardization(image), index % 5


def dataset(parallel):
    return (tf.data.Dataset.range(1 << 40).map(augment, num_parallel_calls=parallel).batch(8, drop_remainder=True).prefetch(1))


def main():
    args = options()
    tf.config.threading.set_intra_op_parallelism_threads(1)
    weights = tf.Variable(tf.random.normal((3, 5)))

    @tf.function
    def step(images, labels):
        with tf.GradientTape() as tape:
            logits = tf.reduce_mean(images, (1, 2)) @ weights
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits))
        weights.assign_sub(0.1 * tape.gradient(loss, weights))

    pace = Pace(args.seconds)
    for images, labels in dataset(2 if args.fix else 1):
        step(images, labels)
        if pace.tick():
            break
    pace.show()


if __name__ == "__main__":
    main()
