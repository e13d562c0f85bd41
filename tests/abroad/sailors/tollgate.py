"""Estimates travel time from toll gate records: tf.data over text files, Keras model."""
import gc
import os
import pathlib
import random
import shutil
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
import numpy as np
import tensorflow as tf

from pace import Pace, options

BATCH = 64
FIELDS = 8   # gate in, gate out, hour, weekday, axles, weight, rain, minutes


def export_records(folder, files=4, lines=5000):
    rng = random.Random(1)
    for n in range(files):
        with open(folder / f"records_{n:02d}.csv", "w") as out:
            for _ in range(lines):
                row = [rng.randrange(40), rng.randrange(40), rng.randrange(24), rng.randrange(7),
                       rng.randrange(2, 6), round(rng.uniform(1, 40), 2), round(rng.random(), 3)]
                minutes = abs(row[0] - row[1]) * 3.5 + 10 * row[6]
                out.write(",".join(str(v) for v in row) + f",{minutes:.1f}\n")


def parse_record(line):
    fields = line.numpy().decode("utf-8").strip().split(",")
    values = [float(f) for f in fields]
    hour = values[2] / 24 * 2 * np.pi
    features = values[:2] + [np.sin(hour), np.cos(hour)] + values[3:7]
    return np.array(features, dtype=np.float32), np.float32(values[7])


def parse_one(line):
    features, minutes = tf.py_function(parse_record, [line], [tf.float32, tf.float32])
    features.set_shape([FIELDS])
    minutes.set_shape([])
    return features, minutes


def parse_many(lines):
    columns = tf.io.decode_csv(lines, [0.0] * FIELDS)
    hour = columns[2] / 24 * 2 * np.pi
    features = columns[:2] + [tf.sin(hour), tf.cos(hour)] + columns[3:7]
    return tf.stack(features, axis=1), columns[7]


def make_dataset(folder, vectorised):
    lines = tf.data.Dataset.list_files(str(folder / "*.csv")).interleave(tf.data.TextLineDataset)
    lines = lines.shuffle(2000).repeat()
    if vectorised:
        records = lines.batch(BATCH).map(parse_many, num_parallel_calls=tf.data.AUTOTUNE)
    else:
        records = lines.map(parse_one, num_parallel_calls=tf.data.AUTOTUNE).batch(BATCH)
    return records.prefetch(tf.data.AUTOTUNE)


class Timer(tf.keras.callbacks.Callback):
    def __init__(self, pace):
        super().__init__()
        self.pace = pace

    def on_train_batch_end(self, batch, logs=None):
        if self.pace.done():
            self.model.stop_training = True


def main():
    args = options()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="tollgate_"))
    try:
        export_records(folder)
        model = tf.keras.Sequential([
            tf.keras.layers.Input((FIELDS,)), tf.keras.layers.Normalization(mean=5.0, variance=50.0),
            tf.keras.layers.Dense(64, activation="relu"), tf.keras.layers.Dense(1)])
        model.compile("adam", "mae")
        pace = Pace(args.seconds)
        model.fit(make_dataset(folder, args.fix), epochs=1000, steps_per_epoch=200, verbose=0,
                  callbacks=[Timer(pace)])
        pace.show()
        gc.collect()   # ends tf.data's threads before the interpreter goes
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
