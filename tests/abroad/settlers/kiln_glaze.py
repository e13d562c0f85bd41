"""Pottery glazes: colour after firing from the recipe of oxides and the curve of the kiln (Keras fit)."""
import os
import shutil
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
import keras
import numpy as np
import tensorflow as tf

from pace import Pace, options

OXIDES, CURVE = 14, 60


def recipes(count=4096, seed=5):
    rng = np.random.default_rng(seed)
    oxides = rng.dirichlet(np.ones(OXIDES), count).astype(np.float32)
    curves = np.cumsum(rng.normal(0.5, 1.0, (count, CURVE)), axis=1).astype(np.float32) / 30
    mix = rng.normal(size=(OXIDES, 3)).astype(np.float32)
    colours = 1 / (1 + np.exp(-(oxides @ mix * 3 + curves[:, -1:] * 0.3)))
    return oxides, curves, colours.astype(np.float32)


def build():
    oxides = keras.Input((OXIDES,), name="oxides")
    curve = keras.Input((CURVE,), name="curve")
    a = keras.layers.Dense(128, activation="gelu")(oxides)
    b = keras.layers.Dense(256, activation="gelu")(curve)
    x = keras.layers.Concatenate()([a, b])
    for width in (384, 384, 256):
        x = keras.layers.Dense(width, activation="gelu")(x)
        x = keras.layers.LayerNormalization()(x)
    colour = keras.layers.Dense(3, activation="sigmoid", name="colour")(x)
    model = keras.Model({"oxides": oxides, "curve": curve}, colour)
    model.compile(keras.optimizers.Adam(1e-3), "mse")
    return model


class Progress(keras.callbacks.Callback):
    def __init__(self, seconds):
        super().__init__()
        self.pace = Pace(seconds)

    def on_train_batch_end(self, batch, logs=None):
        if self.pace.done():
            self.model.stop_training = True


def main():
    given = options()
    folder = tempfile.mkdtemp(prefix="glaze_")
    try:
        oxides, curves, colours = recipes()
        data = tf.data.Dataset.from_tensor_slices(({"oxides": oxides, "curve": curves}, colours))
        data = data.cache().shuffle(4096).repeat().batch(64).prefetch(tf.data.AUTOTUNE)
        model = build()
        progress = Progress(given.seconds)
        keeper = keras.callbacks.ModelCheckpoint(os.path.join(folder, "glaze.keras"),
                                                 save_freq=200 if given.fix else 5)
        model.fit(data, epochs=1, steps_per_epoch=100_000, callbacks=[keeper, progress], verbose=0)
        progress.pace.show()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
