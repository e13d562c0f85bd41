"""Finds transients in cut-outs of a survey telescope, with Keras; the cluster may end a job at any time."""
import os
import shutil
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

import keras
import numpy as np
import tensorflow as tf
from keras import layers

from pace import Pace, options


def cutouts(nights=6, each=200, side=40):
    """New minus reference, with a point source in every second one."""
    rng = np.random.default_rng(8)
    sky = rng.normal(0, 1, (nights * each, side, side, 1)).astype("float32")
    real = np.arange(len(sky)) % 2
    sky[real == 1, side // 2 - 1:side // 2 + 2, side // 2 - 1:side // 2 + 2] += 3
    return sky, real.astype("float32")


def build(side=40):
    model = keras.Sequential([
        keras.Input((side, side, 1)),
        layers.Conv2D(16, 5, strides=2, activation="relu"),
        layers.Flatten(),
        layers.Dense(768, activation="relu"),
        layers.Dropout(0.3),
        layers.Dense(1, activation="sigmoid"),
    ])
    model.compile("adam", "binary_crossentropy")
    return model


class Shift(keras.callbacks.Callback):
    """The end of the observers' shift."""

    def __init__(self, pace):
        super().__init__()
        self.pace = pace

    def on_train_batch_end(self, batch, logs=None):
        if self.pace.done():
            self.model.stop_training = True


def turn(cutout, real):
    return tf.image.random_flip_left_right(cutout), real


def main():
    opts = options()
    folder = tempfile.mkdtemp(prefix="telescope")
    try:
        data = (tf.data.Dataset.from_tensor_slices(cutouts()).shuffle(1200).repeat()
                .map(turn, num_parallel_calls=2).batch(32).prefetch(2))
        keeper = keras.callbacks.ModelCheckpoint(os.path.join(folder, "transients.keras"),
                                                 save_freq=200 if opts.fix else 4)
        pace = Pace(opts.seconds)
        build().fit(data, steps_per_epoch=100000, epochs=1, verbose=0, callbacks=[keeper, Shift(pace)])
        pace.show()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
