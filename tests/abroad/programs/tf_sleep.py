"""tf.data whose map waits for a store in Python, two calls at a time beside the trainer; the fix is eight at a time, with as many threads."""
import os
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy
import tensorflow as tf

import harness


def ask(index):
    time.sleep(0.02)
    return numpy.int64(index)


if __name__ == "__main__":
    args = harness.options()
    tf.config.threading.set_intra_op_parallelism_threads(1)
    rows = tf.data.Dataset.range(1 << 40)
    options = tf.data.Options()
    options.threading.private_threadpool_size = 8 if args.fix else 0  # else as many threads as there are cores
    rows = rows.with_options(options).map(lambda index: tf.numpy_function(ask, [index], tf.int64), num_parallel_calls=8 if args.fix else 2)
    harness.loop(harness.forever(lambda: rows.batch(4).prefetch(2)), lambda batch: harness.burn(0.001), args.seconds)
    os._exit(0)  # leaving takes seconds, which are none of the training
