"""Predicts the points of a wine from its tasting note, with a training loop of its own in TensorFlow."""
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

import numpy as np
import tensorflow as tf

from pace import Pace, options

tf.get_logger().setLevel("ERROR")
WORDS = ("oak cherry plum leather tobacco citrus apple honey pepper smoke vanilla mineral tannin crisp round "
         "dry sweet long short earthy floral spicy ripe green jammy lean").split()


def tasting_notes(count=2000, length=24):
    rng = np.random.default_rng(5)
    notes = rng.integers(1, len(WORDS) + 1, (count, length)).astype("int32")
    points = (80 + 20 * (notes < 9).mean(1) + rng.normal(0, .5, count)).astype("float32")
    return notes, points


class Cellar(tf.keras.Model):
    def __init__(self):
        super().__init__()
        self.embed = tf.keras.layers.Embedding(len(WORDS) + 1, 32)
        self.conv = tf.keras.layers.Conv1D(48, 3, activation="relu")
        self.pool = tf.keras.layers.GlobalMaxPooling1D()
        self.hidden = tf.keras.layers.Dense(64, activation="relu")
        self.head = tf.keras.layers.Dense(1)

    def call(self, notes):
        return 80 + 20 * self.head(self.hidden(self.pool(self.conv(self.embed(notes)))))[:, 0]


model = Cellar()


@tf.function
def train_step(notes, points, rate):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(model(notes) - points))
    for weight, slope in zip(model.trainable_variables, tape.gradient(loss, model.trainable_variables)):
        weight.assign_sub(rate * tf.clip_by_norm(tf.convert_to_tensor(slope), 1.0))
    return loss


def learning_rate(step, top=0.02, warm_up=100):
    return top * min((step + 1) / warm_up, (warm_up / (step + 1)) ** 0.5)


def main():
    opts = options()
    notes, points = tasting_notes()
    data = tf.data.Dataset.from_tensor_slices((notes, points))
    if opts.fix:
        data = data.cache().shuffle(2000).repeat().batch(64, num_parallel_calls=tf.data.AUTOTUNE)
        data = data.prefetch(tf.data.AUTOTUNE)
    else:
        data = data.shuffle(2000).repeat().batch(64)
    model(notes[:2])
    pace = Pace(opts.seconds)
    for step, (note, point) in enumerate(data):
        loss = train_step(note, point, learning_rate(step))
        if pace.done():
            break
    print(f"mean squared error {float(loss):.2f}")
    pace.show()


if __name__ == "__main__":
    main()
