"""Keras fit on tf.data that decodes and scales the same PNGs in each epoch, on all cores. --fix: .cache() after the decoding."""
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("KERAS_BACKEND", "tensorflow")
import keras
import numpy as np
import tensorflow as tf

from pace import Pace, options

COUNT, SIDE = 192, 224


def encoded():
    rng, files = np.random.default_rng(0), []
    for _ in range(24):
        noise = rng.integers(0, 40, (SIDE, SIDE, 3)) + np.arange(SIDE)[:, None, None]
        files.append(tf.io.encode_png(np.clip(noise, 0, 255).astype(np.uint8)).numpy())
    return [files[i % 24] for i in range(COUNT)]


def decoded(file, label):
    picture = tf.io.decode_png(file, channels=3)
    picture = tf.image.resize(picture, (64, 64), method="lanczos3", antialias=True)
    return picture / 255.0, label


class Counter(keras.callbacks.Callback):
    def __init__(self, seconds):
        super().__init__()
        self.pace = Pace(seconds)

    def on_train_batch_end(self, batch, logs=None):
        if self.pace.done():
            self.model.stop_training = True


def main():
    args = options()
    data = tf.data.Dataset.from_tensor_slices((encoded(), np.arange(COUNT) % 10)).map(decoded, num_parallel_calls=tf.data.AUTOTUNE)
    if args.fix:
        data = data.cache()
    data = data.shuffle(64).repeat().batch(16).prefetch(tf.data.AUTOTUNE)
    model = keras.Sequential([keras.layers.Input((64, 64, 3)), keras.layers.Conv2D(8, 5, strides=4, activation="relu"),
                              keras.layers.GlobalAveragePooling2D(), keras.layers.Dense(10)])
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    counter = Counter(args.seconds)
    model.fit(data, steps_per_epoch=COUNT // 16, epochs=1 << 20, verbose=0, callbacks=[counter])
    counter.pace.show()


if __name__ == "__main__":
    main()
