"""Sound or broken: photographs of roofs from a folder of PNG files, with tf.data."""
import os
import shutil
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np
import tensorflow as tf
from PIL import Image

from pace import Pace, options

SIDE = 224


def photograph(folder, n=160):
    rng = np.random.default_rng(4)
    for i in range(n):
        rough = rng.integers(0, 255, (14, 14, 3), dtype=np.uint8)
        roof = np.asarray(Image.fromarray(rough).resize((SIDE, SIDE), Image.BILINEAR), np.int16)
        roof = roof + rng.integers(-6, 7, roof.shape, dtype=np.int16)
        Image.fromarray(roof.clip(0, 255).astype(np.uint8)).save(os.path.join(folder, f"{i:03d}-{i % 2}.png"),
                                                                 compress_level=1)


def develop(path):
    image = tf.image.decode_png(tf.io.read_file(path), channels=3)
    image = tf.image.resize(tf.cast(image, tf.float32) / 255, (64, 64))
    broken = tf.strings.to_number(tf.strings.substr(path, -5, 1), tf.int32)
    return image, broken


def main():
    args = options()
    folder = tempfile.mkdtemp(prefix="roof")
    photograph(folder)
    data = tf.data.Dataset.list_files(folder + "/*.png", shuffle=False).map(develop, num_parallel_calls=tf.data.AUTOTUNE)
    if args.fix:
        data = data.cache()
    data = data.shuffle(64).repeat().batch(16).prefetch(tf.data.AUTOTUNE)
    net = tf.keras.Sequential([tf.keras.Input((64, 64, 3)), tf.keras.layers.AveragePooling2D(8),
                               tf.keras.layers.Flatten(), tf.keras.layers.Dense(16, "relu"), tf.keras.layers.Dense(2)])
    sgd = tf.keras.optimizers.SGD(0.01)
    measure = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    @tf.function
    def step(image, broken):
        with tf.GradientTape() as tape:
            loss = measure(broken, net(image, training=True))
        sgd.apply_gradients(zip(tape.gradient(loss, net.trainable_variables), net.trainable_variables))
        return loss

    pace = Pace(args.seconds)
    for image, broken in data:
        step(image, broken)
        if pace.done():
            break
    pace.show()
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
