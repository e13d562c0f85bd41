"""Leaf disease classifier: JPEG photographs through tf.data into a small Keras convnet, with a custom training loop."""
import os
import shutil
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["KERAS_BACKEND"] = "tensorflow"

import keras
import numpy as np
import tensorflow as tf
from PIL import Image

from pace import Pace, options

CLASSES = ["healthy", "rust", "mildew", "blight"]
SIDE = 64


def make_photos(folder, count=32):
    rng = np.random.default_rng(11)
    paths, labels = [], []
    for index in range(count):
        label = index % len(CLASSES)
        coarse = rng.integers(0, 255, (48, 48, 3), dtype=np.uint8)
        coarse[..., label % 3] //= 2
        path = os.path.join(folder, f"{CLASSES[label]}_{index:04d}.jpg")
        Image.fromarray(coarse).resize((1200, 1200), Image.BICUBIC).save(path, quality=90)
        paths.append(path)
        labels.append(label)
    return paths, labels


def load_photo(path, label):
    image = tf.io.decode_jpeg(tf.io.read_file(path), channels=3)
    image = tf.image.resize(image, [SIDE + 8, SIDE + 8])
    image = tf.image.random_crop(image, [SIDE, SIDE, 3])
    image = tf.image.random_flip_left_right(image)
    return image / 255.0, label


def build_dataset(paths, labels, parallel_calls):
    dataset = tf.data.Dataset.from_tensor_slices((paths, labels))
    dataset = dataset.shuffle(len(paths)).repeat()
    dataset = dataset.map(load_photo, num_parallel_calls=parallel_calls)
    return dataset.batch(8, drop_remainder=True).prefetch(2)


def build_model():
    return keras.Sequential([
        keras.Input((SIDE, SIDE, 3)),
        keras.layers.Conv2D(8, 3, strides=2, activation="relu"),
        keras.layers.Conv2D(16, 3, strides=2, activation="relu"),
        keras.layers.GlobalAveragePooling2D(),
        keras.layers.Dense(len(CLASSES)),
    ])


def main():
    args = options()
    tf.config.threading.set_intra_op_parallelism_threads(2)
    folder = tempfile.mkdtemp(prefix="leaves_")
    try:
        paths, labels = make_photos(folder)
        dataset = build_dataset(paths, labels, tf.data.AUTOTUNE if args.fix else None)
        model = build_model()
        loss_fn = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        optimizer = keras.optimizers.Adam(1e-3)
        optimizer.build(model.trainable_variables)

        @tf.function
        def train_step(images, targets):
            with tf.GradientTape() as tape:
                loss = loss_fn(targets, model(images, training=True))
            grads = tape.gradient(loss, model.trainable_variables)
            optimizer.apply_gradients(zip(grads, model.trainable_variables))
            return loss

        pace, losses = Pace(args.seconds), []
        for images, targets in dataset:
            losses.append(float(train_step(images, targets)))
            if pace.done():
                break
        print(f"loss {np.mean(losses[:5]):.3f} -> {np.mean(losses[-5:]):.3f}")
        pace.show()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
