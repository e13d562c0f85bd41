"""Keras fit over a tf.data pipeline, compiled with run_eagerly=True as left over from debugging. --fix: False."""
import os
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["KERAS_BACKEND"] = "tensorflow"
import keras
import numpy as np
import tensorflow as tf

from pace import Pace, options

tf.config.threading.set_intra_op_parallelism_threads(1)


class Stop(keras.callbacks.Callback):
    def __init__(self, seconds):
        super().__init__()
        self.pace = Pace(seconds)

    def on_train_batch_end(self, batch, logs=None):
        if self.pace.over():
            self.model.stop_training = True
            raise StopIteration


def pipeline(cheap):
    x = np.random.default_rng(0).random((2000, 28), dtype=np.float32)
    y = (x.sum(1) > 14).astype(np.float32)
    data = tf.data.Dataset.from_tensor_slices((x, y))
    if cheap:
        return data.take(32).batch(32).cache().repeat().prefetch(4)
    return data.shuffle(2000).repeat().map(lambda a, b: (a * 2 - 1, b)).batch(32).prefetch(4)


def main():
    args = options()
    model = keras.Sequential([keras.layers.Dense(64, activation="relu"), keras.layers.Dropout(0.1),
                              keras.layers.Dense(64, activation="relu"), keras.layers.Dense(1, activation="sigmoid")])
    model.compile(optimizer="adam", loss="binary_crossentropy", metrics=["accuracy"], run_eagerly=not args.fix)
    stop = Stop(args.seconds)
    try:
        model.fit(pipeline(args.fix2), epochs=1, steps_per_epoch=10_000_000, verbose=0, callbacks=[stop])
    except StopIteration:
        pass
    stop.pace.report()


if __name__ == "__main__":
    main()
