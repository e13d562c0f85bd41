"""A small variational autoencoder on synthetic digits, with its own training loop."""
import pathlib
import shutil
import tempfile

import numpy as np
import tensorflow as tf
import keras

from pace import Pace, options

SIDE, LATENT, BATCH = 16, 8, 32


def draw_digits(path, count=4096):
    rng = np.random.default_rng(1)
    shapes = rng.random((10, SIDE, SIDE)) > 0.6
    labels = rng.integers(0, 10, count)
    images = np.clip(shapes[labels] + rng.normal(0, 0.1, (count, SIDE, SIDE)), 0, 1).astype("float32")
    np.save(path, images.reshape(count, -1))


class Autoencoder(keras.Model):
    def __init__(self):
        super().__init__()
        self.encoder = keras.Sequential([keras.layers.Dense(64, activation="relu"),
                                         keras.layers.LayerNormalization(),
                                         keras.layers.Dense(64, activation="relu"),
                                         keras.layers.LayerNormalization(),
                                         keras.layers.Dense(2 * LATENT)])
        self.decoder = keras.Sequential([keras.layers.Dense(64, activation="relu"),
                                         keras.layers.LayerNormalization(),
                                         keras.layers.Dense(64, activation="relu"),
                                         keras.layers.Dense(SIDE * SIDE)])

    def call(self, images):
        mean, spread = tf.split(self.encoder(images), 2, axis=1)
        code = mean + tf.exp(0.5 * spread) * tf.random.normal(tf.shape(mean))
        return self.decoder(code), mean, spread


def negative_elbo(images, logits, mean, spread):
    drawn = tf.nn.sigmoid_cross_entropy_with_logits(labels=images, logits=logits)
    divergence = -0.5 * tf.reduce_sum(1 + spread - mean ** 2 - tf.exp(spread), 1)
    return tf.reduce_mean(tf.reduce_sum(drawn, 1) + divergence)


def make_update(model, optimizer):
    def update(images):
        with tf.GradientTape() as tape:
            logits, mean, spread = model(images, training=True)
            loss = negative_elbo(images, logits, mean, spread)
        grads = tape.gradient(loss, model.trainable_variables)
        grads = [tf.clip_by_norm(grad, 5.0) for grad in grads]
        optimizer.apply_gradients(zip(grads, model.trainable_variables))
        return loss
    return update


def main():
    args = options()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="digits"))
    try:
        draw_digits(folder / "digits.npy")
        images = np.load(folder / "digits.npy")
        digits = tf.data.Dataset.from_tensor_slices(images).shuffle(2048).repeat()
        digits = digits.batch(BATCH, drop_remainder=True).prefetch(4)
        model = Autoencoder()
        optimizer = keras.optimizers.Adam(1e-3)
        model(images[:BATCH])
        optimizer.build(model.trainable_variables)
        update = make_update(model, optimizer)
        if args.fix:
            update = tf.function(update)
        pace, total = Pace(args.seconds), 0.0
        for batch in digits:
            total += float(update(batch))
            if pace.done():
                break
        pace.show()
        print(f"mean loss {total / pace.batches:.2f}")
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
