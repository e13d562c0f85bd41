"""Short tf.data epochs, each beginning with a large shuffle buffer to fill."""
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import tensorflow as tf

from pace import Pace, options


def series(buffer):
    data = tf.data.Dataset.range(1 << 40)
    data = data.map(lambda n: tf.sin(tf.range(64, dtype=tf.float32) * tf.cast(n % 100, tf.float32)))
    return data.shuffle(buffer).batch(16).take(60).prefetch(1)


class Runner:
    def __init__(self, seconds):
        self.pace = Pace(seconds)
        self.w = tf.Variable(tf.random.normal((64, 1)))

    def epoch(self, data):
        for x in data:
            self.w.assign_sub(1e-3 * tf.matmul(x, tf.matmul(x, self.w), transpose_a=True))
            if self.pace.tick():
                return True
        return False


args = options()
runner = Runner(args.seconds)
data = series(200 if args.fix else 8000)
while not runner.epoch(data):
    pass
runner.pace.show()
