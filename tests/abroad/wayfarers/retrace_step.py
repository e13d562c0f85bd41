"""A training loop of one's own in TensorFlow; the step's number goes into the compiled function, for a warm-up of the learning rate.
--fix: the number goes in as a tensor, so the function isn't traced for each number."""
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np
import tensorflow as tf

from pace import Pace, options

tf.get_logger().setLevel("ERROR")
FEATURES, WIDTH = 40, 64


class Regression(tf.Module):
    def __init__(self):
        noise = tf.random.Generator.from_seed(0)
        sizes = [FEATURES, WIDTH, WIDTH, WIDTH, 1]
        self.layers = [(tf.Variable(noise.normal((before, after)) * 0.1), tf.Variable(tf.zeros(after))) for before, after in zip(sizes, sizes[1:])]

    def __call__(self, rows):
        for place, (weight, bias) in enumerate(self.layers):
            rows = rows @ weight + bias
            if place + 1 < len(self.layers):
                rows = tf.nn.gelu(rows)
        return rows[:, 0]


def main():
    args = options()
    data = np.random.default_rng(0).random((8192, FEATURES + 1), dtype=np.float32)
    dataset = tf.data.Dataset.from_tensor_slices((data[:, :-1], data[:, -1])).repeat().batch(64).prefetch(4)
    model = Regression()

    @tf.function
    def train_step(rows, targets, number):
        rate = 0.01 * tf.minimum(1.0, tf.cast(number + 1, tf.float32) / 1000.0)
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((model(rows) - targets) ** 2)
        variables = model.trainable_variables
        for variable, slope in zip(variables, tape.gradient(loss, variables)):
            variable.assign_sub(rate * slope)
        return loss

    pace = Pace(args.seconds)
    for number, (rows, targets) in enumerate(dataset):
        train_step(rows, targets, tf.constant(number) if args.fix else number)
        if pace.done():
            break
    pace.show()


if __name__ == "__main__":
    main()
