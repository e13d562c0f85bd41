"""Hourly bike-hire demand per station: a Keras regressor, fit() from a tf.data pipeline, with checkpoints."""
import os
import shutil
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["KERAS_BACKEND"] = "tensorflow"

import keras
import numpy as np
import tensorflow as tf

from pace import Pace, options

STATIONS, FEATURES = 300, 24


def make_history(rows=60_000):
    rng = np.random.default_rng(5)
    station = rng.integers(0, STATIONS, rows).astype("int32")
    weather = rng.normal(size=(rows, FEATURES)).astype("float32")
    popularity = rng.gamma(2.0, 2.0, STATIONS).astype("float32")
    demand = popularity[station] + weather[:, 0] * 1.5 - np.abs(weather[:, 1]) + rng.normal(0, 0.3, rows)
    return station, weather, demand.astype("float32")


def build_model():
    station = keras.Input((), dtype="int32", name="station")
    weather = keras.Input((FEATURES,), name="weather")
    hidden = keras.layers.Concatenate()([keras.layers.Embedding(STATIONS, 32)(station), weather])
    for width in (512, 512, 256):
        hidden = keras.layers.Dense(width, activation="relu")(hidden)
    model = keras.Model([station, weather], keras.layers.Dense(1)(hidden))
    model.compile(optimizer=keras.optimizers.Adam(1e-3), loss="mse")
    return model


class Throughput(keras.callbacks.Callback):
    def __init__(self, seconds):
        super().__init__()
        self.pace = Pace(seconds)

    def on_train_batch_end(self, batch, logs=None):
        if self.pace.done():
            self.model.stop_training = True


def main():
    args = options()
    folder = tempfile.mkdtemp(prefix="bikes_")
    try:
        station, weather, demand = make_history()
        dataset = tf.data.Dataset.from_tensor_slices(({"station": station, "weather": weather}, demand))
        dataset = dataset.shuffle(10_000).repeat().batch(128).prefetch(tf.data.AUTOTUNE)
        throughput = Throughput(args.seconds)
        checkpoint = keras.callbacks.ModelCheckpoint(
            os.path.join(folder, "demand.keras"),
            save_freq="epoch" if args.fix else 1,  # keep the last model at hand
        )
        history = build_model().fit(dataset, steps_per_epoch=1000, epochs=1000, verbose=0,
                                    callbacks=[checkpoint, throughput])
        print(f"mse {history.history['loss'][-1]:.3f}")
        throughput.pace.show()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
