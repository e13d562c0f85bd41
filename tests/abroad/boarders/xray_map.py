"""TensorFlow: chest X-rays as JPEG files, read, decoded and augmented by tf.data, and a training loop of one's own.

--fix: map(..., num_parallel_calls=tf.data.AUTOTUNE)."""
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import tempfile

import numpy as np
import tensorflow as tf

from pace import Pace, options

SIDE = 128


def photograph(folder, count=48):
    rng = np.random.default_rng(9)
    shade = np.linspace(0, 200, 1024)[:, None] + np.linspace(0, 40, 1024)[None]
    for number in range(count):
        picture = (shade + rng.integers(0, 16, (1024, 1024))).clip(0, 255).astype(np.uint8)
        tf.io.write_file(os.path.join(folder, f"{number:02d}.jpg"), tf.io.encode_jpeg(picture[..., None], quality=92))
    return [os.path.join(folder, name) for name in sorted(os.listdir(folder))]


def load(path, label):
    picture = tf.io.decode_jpeg(tf.io.read_file(path), channels=1)
    picture = tf.image.random_crop(picture, (960, 960, 1))
    picture = tf.image.resize(picture, (SIDE, SIDE), antialias=True) / 255.0
    picture = tf.image.random_flip_left_right(picture)
    picture = tf.image.random_brightness(picture, 0.1)
    return picture, label


def main():
    args = options()
    with tempfile.TemporaryDirectory() as folder:
        paths = photograph(folder)
        labels = [number % 2 for number in range(len(paths))]
        dataset = tf.data.Dataset.from_tensor_slices((paths, labels)).shuffle(len(paths)).repeat()
        dataset = dataset.map(load, num_parallel_calls=tf.data.AUTOTUNE if args.fix else None).batch(16).prefetch(4)
        model = tf.keras.Sequential([tf.keras.Input((SIDE, SIDE, 1)), tf.keras.layers.Conv2D(4, 5, strides=4, activation="relu"), tf.keras.layers.Conv2D(8, 3, strides=2, activation="relu"),
                                     tf.keras.layers.GlobalAveragePooling2D(), tf.keras.layers.Dense(2)])
        optimizer = tf.keras.optimizers.SGD(0.01)
        criterion = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)

        @tf.function
        def train_step(pictures, labels):
            with tf.GradientTape() as tape:
                loss = criterion(labels, model(pictures, training=True))
            optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
            return loss

        pace = Pace(args.seconds)
        for pictures, labels in dataset:
            train_step(pictures, labels)
            if pace.done():
                break
        pace.show()


if __name__ == "__main__":
    main()
