"""Trains on JPEG images by tf.data."""
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
import tensorflow as tf

from meter import Meter, arguments


def decode(data):
    image = tf.cast(tf.io.decode_jpeg(data, channels=3), tf.float32) / 255
    image = tf.image.random_flip_left_right(tf.image.resize(image, (128, 128)))
    return tf.image.random_brightness(image, 0.2)


def main():
    args = arguments()
    tf.config.threading.set_intra_op_parallelism_threads(1)
    smooth = tf.image.resize(tf.random.uniform((32, 40, 40, 3), 0, 255), (400, 400))
    files = [tf.io.encode_jpeg(tf.cast(image, tf.uint8)).numpy() for image in smooth]
    data = tf.data.Dataset.from_tensor_slices(files).repeat()
    if args.fix:
        data = data.map(decode, num_parallel_calls=2).batch(16).prefetch(2)
    else:
        data = data.map(decode).batch(16)
    kernel = tf.Variable(tf.random.normal((8, 8, 3, 8), stddev=0.1))

    @tf.function
    def step(images):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(tf.nn.conv2d(images, kernel, 8, "VALID")))
        kernel.assign_sub(0.01 * tape.gradient(loss, kernel))

    meter = Meter(args.seconds)
    for images in data:
        step(images)
        if meter.tick():
            break
    meter.show()


if __name__ == "__main__":
    main()
