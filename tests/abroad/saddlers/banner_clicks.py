"""Click-through rate of banners: impressions in TFRecord files, an embedding model, a custom training loop."""
import os
import shutil
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
import numpy as np
import tensorflow as tf

from pace import Pace, options

CATEGORICAL = {"site": 2000, "banner": 5000, "advertiser": 300, "device": 40, "hour": 24, "region": 120}
BATCH = 512

FEATURES = {name: tf.io.FixedLenFeature([], tf.int64) for name in CATEGORICAL}
FEATURES["profile"] = tf.io.FixedLenFeature([8], tf.float32)
FEATURES["clicked"] = tf.io.FixedLenFeature([], tf.float32)


def write_impressions(folder, files=4, rows=1000):
    rng = np.random.default_rng(7)
    for number in range(files):
        with tf.io.TFRecordWriter(os.path.join(folder, f"impressions-{number:03}.tfrecord")) as writer:
            for _ in range(rows):
                feature = {name: tf.train.Feature(int64_list=tf.train.Int64List(value=[int(rng.integers(size))]))
                           for name, size in CATEGORICAL.items()}
                profile = rng.normal(size=8)
                feature["profile"] = tf.train.Feature(float_list=tf.train.FloatList(value=profile))
                feature["clicked"] = tf.train.Feature(
                    float_list=tf.train.FloatList(value=[float(profile[0] > 1.2)]))
                writer.write(tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString())


def impression(record):
    row = tf.io.parse_single_example(record, FEATURES)
    row["profile"] = tf.clip_by_value(row["profile"], -3.0, 3.0)
    return row, row.pop("clicked")


def impressions(records):
    rows = tf.io.parse_example(records, FEATURES)
    rows["profile"] = tf.clip_by_value(rows["profile"], -3.0, 3.0)
    return rows, rows.pop("clicked")


class ClickModel(tf.keras.Model):
    def __init__(self):
        super().__init__()
        self.tables = {name: tf.keras.layers.Embedding(size, 8) for name, size in CATEGORICAL.items()}
        self.hidden = tf.keras.layers.Dense(32, activation="relu")
        self.out = tf.keras.layers.Dense(1)

    def call(self, rows):
        parts = [self.tables[name](rows[name]) for name in CATEGORICAL] + [rows["profile"]]
        return self.out(self.hidden(tf.concat(parts, axis=-1)))[:, 0]


def main():
    args = options()
    folder = tempfile.mkdtemp(prefix="banners")
    try:
        write_impressions(folder)
        files = tf.data.Dataset.list_files(os.path.join(folder, "*.tfrecord"))
        data = files.interleave(tf.data.TFRecordDataset, cycle_length=4).shuffle(4000).repeat()
        if args.fix:
            data = data.batch(BATCH).map(impressions, num_parallel_calls=tf.data.AUTOTUNE)
        else:
            data = data.map(impression, num_parallel_calls=tf.data.AUTOTUNE).batch(BATCH)
        data = data.prefetch(2)

        model = ClickModel()
        optimizer = tf.keras.optimizers.SGD(0.05)
        bce = tf.keras.losses.BinaryCrossentropy(from_logits=True)

        @tf.function
        def train_step(rows, clicked):
            with tf.GradientTape() as tape:
                loss = bce(clicked, model(rows))
            grads = tape.gradient(loss, model.trainable_variables)
            optimizer.apply_gradients(zip(grads, model.trainable_variables))
            return loss

        pace = Pace(args.seconds)
        for rows, clicked in data:
            loss = train_step(rows, clicked)
            if pace.done():
                break
        print(f"log loss {float(loss):.4f}")
        pace.show()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
