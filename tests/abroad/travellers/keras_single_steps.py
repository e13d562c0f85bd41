"""Keras' fit with a small network for fraud scores, ready-made batches from tf.data.
--fix: steps_per_execution 1 -> 32."""
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import keras
import numpy as np
import tensorflow as tf

from pace import Pace, options


class Clock(keras.callbacks.Callback):
    def __init__(self, seconds):
        super().__init__()
        self.pace, self.last = Pace(seconds), -1

    def on_train_batch_end(self, batch, logs=None):
        if self.pace.done(batch - self.last):
            self.model.stop_training = True
        self.last = batch


def main():
    args = options()
    tf.config.threading.set_intra_op_parallelism_threads(1)
    rng = np.random.default_rng(0)
    payments = rng.normal(size=(500, 32, 20)).astype(np.float32)
    fraud = (payments[:, :, :3].sum(2) > 2).astype(np.float32)[:, :, None]
    data = tf.data.Dataset.from_tensor_slices((payments, fraud)).repeat().prefetch(4)
    model = keras.Sequential([keras.Input((20,)), keras.layers.Dense(16, activation="relu"), keras.layers.Dense(1, activation="sigmoid")])
    model.compile(optimizer="sgd", loss="binary_crossentropy", metrics=["accuracy"], steps_per_execution=32 if args.fix else 1, jit_compile=False)
    clock = Clock(args.seconds)
    model.fit(data, steps_per_epoch=1 << 20, epochs=1, verbose=0, callbacks=[clock])
    clock.pace.show()


if __name__ == "__main__":
    main()
