"""Keras: heartbeats of an ECG, twelve leads, all in memory, and model.fit.

--fix: the dataset cached and prefetched, as every guide says."""
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow as tf
from tensorflow import keras

from pace import Pace, options

LEADS, SAMPLES, RHYTHMS = 12, 500, 5


def beats(count=2048):
    rng = np.random.default_rng(12)
    rhythm = rng.integers(0, RHYTHMS, count)
    time = np.linspace(0, 1, SAMPLES)
    wave = np.exp(-np.square((time[None] * (3 + rhythm[:, None]) % 1 - 0.5) / 0.03))
    leads = wave[..., None] * rng.normal(1, 0.2, (count, 1, LEADS)) + rng.normal(0, 0.1, (count, SAMPLES, LEADS))
    return leads.astype(np.float32), rhythm


def build():
    inputs = keras.Input((SAMPLES, LEADS))
    x = keras.layers.Conv1D(48, 7, padding="same", activation="relu")(inputs)
    for width in (48, 64, 96):
        y = keras.layers.Conv1D(width, 5, padding="same")(x)
        y = keras.layers.BatchNormalization()(y)
        y = keras.layers.ReLU()(y)
        y = keras.layers.Conv1D(width, 5, padding="same")(y)
        x = keras.layers.MaxPooling1D(2)(keras.layers.ReLU()(y + keras.layers.Conv1D(width, 1)(x)))
    return keras.Model(inputs, keras.layers.Dense(RHYTHMS)(keras.layers.GlobalAveragePooling1D()(x)))


class Count(keras.callbacks.Callback):
    def __init__(self, pace):
        super().__init__()
        self.pace = pace

    def on_train_batch_end(self, batch, logs=None):
        if self.pace.done():
            self.model.stop_training = True


def main():
    args = options()
    leads, rhythm = beats()
    dataset = tf.data.Dataset.from_tensor_slices((leads, rhythm))
    if args.fix:
        dataset = dataset.cache()
    dataset = dataset.shuffle(512).repeat().batch(32)
    if args.fix:
        dataset = dataset.prefetch(tf.data.AUTOTUNE)
    model = build()
    model.compile(keras.optimizers.Adam(1e-3), keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
    pace = Pace(args.seconds)
    model.fit(dataset, epochs=1000, steps_per_epoch=8, verbose=0, callbacks=[Count(pace)])
    pace.show()


if __name__ == "__main__":
    main()
