"""Spectrograms in TFRecord files with compression, read one file after the other by TFRecordDataset; parsing is done in parallel.
--fix keeps the same records without compression."""
import os
import tempfile
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy
import tensorflow as tf

import meter

FILES, RECORDS, FRAMES, BANDS = 2, 128, 256, 128


def store(folder, compression):
    draw = numpy.random.default_rng(0)
    paths = []
    for i in range(FILES):
        paths.append(os.path.join(folder, f"part-{i}.tfrecord"))
        with tf.io.TFRecordWriter(paths[-1], tf.io.TFRecordOptions(compression, compression_level=1)) as writer:
            for _ in range(RECORDS):
                sound = (draw.normal(size=(FRAMES, BANDS)) * 20).astype("int8").astype("float32")
                feature = tf.train.Feature(bytes_list=tf.train.BytesList(value=[sound.tobytes()]))
                writer.write(tf.train.Example(features=tf.train.Features(feature={"sound": feature})).SerializeToString())
    return paths


def parse(record):
    sound = tf.io.parse_single_example(record, {"sound": tf.io.FixedLenFeature((), tf.string)})["sound"]
    return tf.reshape(tf.io.decode_raw(sound, tf.float32), (FRAMES, BANDS))


def main():
    options = meter.arguments()
    compression = "" if options.fix else "GZIP"
    weights = tf.Variable(tf.zeros((BANDS, 1)))

    @tf.function
    def train(sounds):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((tf.reduce_mean(sounds, 1) @ weights - 1) ** 2)
        weights.assign_sub(1e-2 * tape.gradient(loss, weights))

    clock = meter.Meter(options.seconds)
    with tempfile.TemporaryDirectory() as folder:
        data = tf.data.TFRecordDataset(store(folder, compression), compression_type=compression).repeat().shuffle(64)
        for sounds in data.map(parse, num_parallel_calls=2).batch(32).prefetch(2):
            train(sounds)
            time.sleep(0.003)       # the rest of the step is the accelerator's
            if clock.tick():
                break
    clock.show()


if __name__ == "__main__":
    main()
