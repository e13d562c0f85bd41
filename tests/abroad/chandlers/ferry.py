"""Passengers of a ferry line from weather and calendar, with Keras on a tf.data pipeline."""
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["KERAS_BACKEND"] = "tensorflow"

import keras
import numpy as np
import tensorflow as tf
from keras import layers

from pace import Pace, options

FEATURES = 20


def crossings(count=20_000):
    rng = np.random.default_rng(8)
    x = rng.standard_normal((count, FEATURES), dtype=np.float32)
    y = np.maximum(0, 200 + 60 * x[:, 0] - 25 * x[:, 1] * x[:, 2]).astype(np.float32) / 100
    data = tf.data.Dataset.from_tensor_slices((x, y))
    return data.shuffle(2_000).repeat().batch(32).prefetch(tf.data.AUTOTUNE)


class Residual(layers.Layer):
    def __init__(self, width):
        super().__init__()
        self.norm = layers.LayerNormalization()
        self.up = layers.Dense(width * 2, activation="gelu")
        self.down = layers.Dense(width)

    def call(self, x):
        return x + self.down(self.up(self.norm(x)))


def build_model(width=48, blocks=6, debug=True):
    inputs = keras.Input((FEATURES,))
    x = layers.Dense(width)(inputs)
    for _ in range(blocks):
        x = Residual(width)(x)
    model = keras.Model(inputs, layers.Dense(1)(x))
    model.compile(keras.optimizers.Adam(1e-3), loss="mse", metrics=["mae"], run_eagerly=debug)
    return model


class Rate(keras.callbacks.Callback):
    def __init__(self, seconds):
        super().__init__()
        self.pace = Pace(seconds)

    def on_train_batch_end(self, batch, logs=None):
        if self.pace.done():
            self.model.stop_training = True


def main():
    args = options()
    model = build_model(debug=not args.fix)
    rate = Rate(args.seconds)
    model.fit(crossings(), epochs=1, steps_per_epoch=1_000_000, verbose=0, callbacks=[rate])
    rate.pace.show()


if __name__ == "__main__":
    main()
