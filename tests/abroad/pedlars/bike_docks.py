"""How many bikes will the dock hold in an hour?  Keras LSTM fed by tf.data."""
import os
import shutil
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["KERAS_BACKEND"] = "tensorflow"
import keras
import numpy as np
import tensorflow as tf

from pace import Pace, options

PAST, SIGNALS = 96, 6


def write_docks(path, windows=6000):
    rng = np.random.default_rng(4)
    phase = rng.uniform(0, 6.28, (windows, 1))
    day = np.sin(np.arange(PAST + 1) / 24 * 6.28 + phase)
    with tf.io.TFRecordWriter(path) as out:
        for curve in day:
            x = curve[:PAST, None] + rng.normal(0, 0.2, (PAST, SIGNALS))
            feature = {"x": tf.train.Feature(float_list=tf.train.FloatList(value=x.ravel())),
                       "y": tf.train.Feature(float_list=tf.train.FloatList(value=[curve[PAST]]))}
            out.write(tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString())


def parse(record):
    row = tf.io.parse_single_example(record, {"x": tf.io.FixedLenFeature([PAST, SIGNALS], tf.float32),
                                              "y": tf.io.FixedLenFeature([1], tf.float32)})
    x = row["x"] - tf.reduce_mean(row["x"], axis=0, keepdims=True)
    return x, row["y"]


def docks(path, tuned):
    data = tf.data.TFRecordDataset(path)
    if tuned:
        data = data.map(parse, num_parallel_calls=tf.data.AUTOTUNE).cache()
    else:
        data = data.map(parse)
    data = data.shuffle(1000).repeat().batch(64)
    return data.prefetch(tf.data.AUTOTUNE) if tuned else data


class Clock(keras.callbacks.Callback):
    def __init__(self, pace):
        super().__init__()
        self.pace = pace

    def on_train_batch_end(self, batch, logs=None):
        if self.pace.done():
            self.model.stop_training = True


def main():
    opts = options()
    tf.config.threading.set_intra_op_parallelism_threads(1)
    folder = tempfile.mkdtemp(prefix="docks")
    try:
        write_docks(f"{folder}/docks.tfrecord")
        model = keras.Sequential([keras.Input((PAST, SIGNALS)), keras.layers.LSTM(96, return_sequences=True),
                                  keras.layers.LSTM(64), keras.layers.Dense(1)])
        model.compile("adam", "mse")
        pace = Pace(opts.seconds)
        model.fit(docks(f"{folder}/docks.tfrecord", opts.fix), steps_per_epoch=10_000, verbose=0,
                  callbacks=[Clock(pace)])
        pace.show()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
