"""Keras fit() whose batches a map computes, one call at a time beside the trainer; the fix is two calls at a time."""
import os
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import tensorflow as tf

import harness


@tf.function
def heavy(index):
    x = tf.random.uniform((160, 160))
    for _ in tf.range(6):
        x = tf.linalg.matmul(x, x) * 1e-3
    return tf.reshape(x, (-1,))[:16], tf.reduce_sum(x)


class Rate(tf.keras.callbacks.Callback):
    def __init__(self, seconds):
        super().__init__()
        self.seconds, self.begin, self.count = seconds, None, 0

    def on_train_batch_end(self, batch, logs=None):
        if self.begin is None:
            self.begin = time.monotonic()
            return
        self.count += 1
        if time.monotonic() - self.begin > self.seconds:
            print("rate %.3f batches/s" % (self.count / (time.monotonic() - self.begin)), flush=True)
            self.model.stop_training = True


if __name__ == "__main__":
    args = harness.options()
    tf.config.threading.set_inter_op_parallelism_threads(3)
    tf.config.threading.set_intra_op_parallelism_threads(1)
    rows = tf.data.Dataset.range(1 << 40).map(heavy, num_parallel_calls=2 if args.fix else 1).batch(8).prefetch(2)
    model = tf.keras.Sequential([tf.keras.Input((16,)), tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(rows, epochs=1, steps_per_epoch=1 << 20, verbose=0, callbacks=[Rate(args.seconds)])
    os._exit(0)  # leaving takes seconds, which are none of the training
