"""tf.data whose map computes one element at a time, in the trainer's own thread; the fix is prefetch and two at a time."""
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import tensorflow as tf

import harness


@tf.function
def heavy(index):
    x = tf.random.uniform((160, 160))
    for _ in tf.range(60):
        x = tf.linalg.matmul(x, x) * 1e-3
    return tf.reduce_sum(x)


if __name__ == "__main__":
    args = harness.options()
    tf.config.threading.set_inter_op_parallelism_threads(2)
    tf.config.threading.set_intra_op_parallelism_threads(1)
    rows = tf.data.Dataset.range(1 << 40)
    rows = rows.map(heavy, num_parallel_calls=2 if args.fix else None).batch(8)
    if args.fix:
        rows = rows.prefetch(4)
    harness.loop(harness.forever(lambda: rows), lambda batch: harness.burn(0.004), args.seconds)
    os._exit(0)  # leaving takes seconds, which are none of the training
