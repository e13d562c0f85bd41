"""Grades blight on potato leaves: PNG tiles through tf.data (parallel decoding, prefetch) into a Keras network."""
import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""

import pathlib
import shutil
import tempfile

import keras
import numpy as np
import tensorflow as tf
from keras import layers

from pace import Pace, options

SIDE, GRADES, LEAVES, BATCH = 48, 5, 256, 16


def write_leaves(folder):
    random = np.random.default_rng(6)
    for i in range(LEAVES):
        green = random.integers(60, 200, (SIDE, SIDE, 3), dtype=np.uint8)
        (folder / f"{i % GRADES}_{i:04d}.png").write_bytes(tf.io.encode_png(green).numpy())


def read_leaf(path, grade):
    picture = tf.io.decode_png(tf.io.read_file(path), channels=3)
    picture = tf.image.random_flip_left_right(tf.cast(picture, tf.float32) / 255.0)
    return tf.ensure_shape(picture, (SIDE, SIDE, 3)), grade


def leaves(folder):
    paths = sorted(str(path) for path in folder.glob("*.png"))
    grades = [int(os.path.basename(path)[0]) for path in paths]
    return (tf.data.Dataset.from_tensor_slices((paths, grades)).shuffle(LEAVES).repeat()
            .map(read_leaf, num_parallel_calls=tf.data.AUTOTUNE).batch(BATCH, drop_remainder=True)
            .prefetch(tf.data.AUTOTUNE))


def network(width, depth):
    leaf = keras.Input((SIDE, SIDE, 3))
    x = layers.Conv2D(width, 3, padding="same", activation="relu")(leaf)
    for _ in range(depth):
        y = layers.Conv2D(width, 3, padding="same")(x)
        y = layers.BatchNormalization()(y)
        x = layers.Add()([x, layers.Activation("relu")(y)])
    x = layers.GlobalAveragePooling2D()(x)
    model = keras.Model(leaf, layers.Dense(GRADES)(x))
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return model


class Watch(keras.callbacks.Callback):
    def __init__(self, pace):
        super().__init__()
        self.pace = pace

    def on_train_batch_end(self, batch, logs=None):
        if self.pace.done():
            self.model.stop_training = True


def main():
    args = options()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="leaves"))
    try:
        write_leaves(folder)
        model = network(width=16 if args.fix else 48, depth=2 if args.fix else 3)
        pace = Pace(args.seconds)
        model.fit(leaves(folder), shuffle=False, steps_per_epoch=20, epochs=10_000, verbose=0, callbacks=[Watch(pace)])
        pace.show()
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
