"""tf.data over records of a slow source, with a shuffle buffer as large as an epoch: nothing comes before the whole epoch has been
read, and nothing is read while the epoch is trained on. --fix has a buffer of a tenth of that."""
import os
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy
import tensorflow as tf

import meter

RECORDS, BATCH = 480, 16


def records():
    table = numpy.random.default_rng(0).normal(size=(RECORDS, 64)).astype("float32")
    for i in range(0, RECORDS, 16):
        time.sleep(0.011)       # the source gives about 1400 records a second, a block of 16 at a time
        yield table[i:i + 16]


def dataset(buffer):
    data = tf.data.Dataset.from_generator(records, output_signature=tf.TensorSpec((16, 64), tf.float32)).unbatch()
    return data.shuffle(buffer).map(lambda row: (row, tf.reduce_sum(row[:4]))).batch(BATCH).prefetch(2)


def main():
    options = meter.arguments()
    data = dataset(RECORDS // 10 if options.fix else RECORDS)
    weights = tf.Variable(tf.zeros((64, 1)))

    @tf.function
    def train(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((tf.squeeze(x @ weights, 1) - y) ** 2)
        weights.assign_sub(1e-2 * tape.gradient(loss, weights))

    clock = meter.Meter(options.seconds)
    over = False
    while not over:
        for x, y in data:
            train(x, y)
            time.sleep(0.012)       # the rest of the step is the accelerator's
            over = clock.tick()
            if over:
                break
    clock.show()


if __name__ == "__main__":
    main()
