"""Keras fit on small pictures that tf.data makes ready."""
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import keras
import tensorflow as tf

from pace import Pace, options


class RateCallback(keras.callbacks.Callback):
    def __init__(self, seconds):
        super().__init__()
        self.pace = Pace(seconds)

    def on_train_batch_end(self, batch, logs=None):
        if self.pace.tick():
            self.model.stop_training = True
            raise StopIteration


def pictures(cheap):
    base = tf.random.uniform((64, 32, 32, 3))

    def make(i):
        image = base[i % 64]
        if not cheap:
            image = tf.image.random_flip_left_right(tf.image.random_brightness(image, 0.1))
        return image, tf.cast(i % 10, tf.int32)

    return tf.data.Dataset.range(1 << 40).map(make, num_parallel_calls=tf.data.AUTOTUNE).batch(32).prefetch(2)


args = options()
width = 4 if args.fix else 24
model = keras.Sequential([keras.layers.Input((32, 32, 3)), keras.layers.Conv2D(width, 3, activation="relu"),
                          keras.layers.Conv2D(width, 3, activation="relu"), keras.layers.MaxPooling2D(),
                          keras.layers.Conv2D(2 * width, 3, activation="relu"), keras.layers.GlobalAveragePooling2D(),
                          keras.layers.Dense(10)])
model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
rate = RateCallback(args.seconds)
try:
    model.fit(pictures(args.fix2), steps_per_epoch=1 << 30, epochs=1, verbose=0, callbacks=[rate])
except StopIteration:
    pass
rate.pace.show()
