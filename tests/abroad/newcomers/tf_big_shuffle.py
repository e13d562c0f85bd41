"""Short tf.data epochs whose shuffle buffer of 6000 records is filled anew at each epoch. --fix: a buffer of 200."""
import os
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf

from pace import Pace, options

tf.config.threading.set_intra_op_parallelism_threads(1)
FEATURES = {"x": tf.io.FixedLenFeature([64], tf.float32), "y": tf.io.FixedLenFeature([], tf.int64)}


def records():
    rng = np.random.default_rng(0)
    for i in range(8000):
        yield tf.train.Example(features=tf.train.Features(feature={
            "x": tf.train.Feature(float_list=tf.train.FloatList(value=rng.random(64))),
            "y": tf.train.Feature(int64_list=tf.train.Int64List(value=[i % 3]))})).SerializeToString()


def parse(record):
    example = tf.io.parse_single_example(record, FEATURES)
    return tf.sort(example["x"]), example["y"]


def main():
    args = options()
    data = tf.data.Dataset.from_tensor_slices(list(records())).map(parse).shuffle(200 if args.fix else 6000).batch(16).take(60).prefetch(2)
    w = tf.Variable(tf.zeros((64, 3)))

    @tf.function
    def step(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(y, x @ w))
        w.assign_sub(0.1 * tape.gradient(loss, w))

    pace = Pace(args.seconds)
    while True:
        for x, y in data:
            step(x, y)
            if pace.over():
                pace.report()
                return


if __name__ == "__main__":
    main()
