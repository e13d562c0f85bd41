"""Yield of tomatoes from a greenhouse's climate series; tf.data and Keras."""
import os
import shutil
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import keras
import numpy as np
import tensorflow as tf

from pace import Pace, options

HOURS, SENSORS = 48, 12


def make_records(folder):
    rng = np.random.default_rng(6)
    path = os.path.join(folder, "climate.tfrecord")
    with tf.io.TFRecordWriter(path) as writer:
        for _ in range(2000):
            series = rng.standard_normal((HOURS, SENSORS), dtype=np.float32)
            feature = {"series": tf.train.Feature(bytes_list=tf.train.BytesList(value=[series.tobytes()])),
                       "kilos": tf.train.Feature(float_list=tf.train.FloatList(value=[float(series[:, 2].mean())]))}
            writer.write(tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString())
    return path


def parse(record):
    spec = {"series": tf.io.FixedLenFeature([], tf.string), "kilos": tf.io.FixedLenFeature([], tf.float32)}
    row = tf.io.parse_single_example(record, spec)
    return tf.reshape(tf.io.decode_raw(row["series"], tf.float32), (HOURS, SENSORS)), row["kilos"]


def climate(path):
    data = tf.data.TFRecordDataset(path).cache().shuffle(500).repeat()
    return data.map(parse, num_parallel_calls=2).batch(16, drop_remainder=True).prefetch(4)


def build_model():
    inputs = keras.Input((HOURS, SENSORS))
    x = inputs
    for width in (16, 16, 24, 24):
        y = keras.layers.Conv1D(width, 3, padding="same", activation="relu")(x)
        y = keras.layers.LayerNormalization()(y)
        x = keras.layers.Concatenate()([x, y])
    x = keras.layers.GlobalAveragePooling1D()(x)
    x = keras.layers.Dense(32, activation="relu")(x)
    return keras.Model(inputs, keras.layers.Dense(1)(x))


class Season(keras.callbacks.Callback):
    def __init__(self, pace):
        super().__init__()
        self.pace = pace

    def on_train_batch_end(self, batch, logs=None):
        if self.pace.done():
            self.model.stop_training = True


def main():
    opts = options()
    tf.config.threading.set_intra_op_parallelism_threads(1)
    folder = tempfile.mkdtemp(prefix="greenhouse")
    try:
        data = climate(make_records(folder))
        model = build_model()
        model.compile(optimizer=keras.optimizers.Adam(1e-3), loss="mse", metrics=["mae"], run_eagerly=not opts.fix)
        pace = Pace(opts.seconds)
        model.fit(data, steps_per_epoch=1_000_000, epochs=1, verbose=0, callbacks=[Season(pace)])
        pace.show()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
