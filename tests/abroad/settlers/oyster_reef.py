"""Oyster reef: turbidity of the next six hours from a day of buoy readings (own training loop on tf.data)."""
import math
import os
import shutil
import tempfile

import numpy as np
import tensorflow as tf

from pace import Pace, options

WINDOW, AHEAD, CHANNELS = 96, 24, 6


def write_buoys(folder, buoys=3, length=4000):
    rng = np.random.default_rng(11)
    for buoy in range(buoys):
        hours = np.arange(length)[:, None] / 16
        tides = np.sin(hours * rng.uniform(0.4, 0.6, CHANNELS) + rng.uniform(0, 6, CHANNELS))
        np.save(os.path.join(folder, f"buoy_{buoy}.npy"), (tides + rng.normal(0, 0.1, tides.shape)).astype(np.float32))


def read_buoys(folder):
    windows, targets = [], []
    for name in sorted(os.listdir(folder)):
        series = np.load(os.path.join(folder, name))
        for start in range(0, len(series) - WINDOW - AHEAD, 8):
            windows.append(series[start:start + WINDOW])
            targets.append(series[start + WINDOW:start + WINDOW + AHEAD, 0])
    return np.stack(windows), np.stack(targets)


class Forecaster(tf.Module):
    def __init__(self):
        super().__init__()
        shape = [(WINDOW * CHANNELS, 128), (128, AHEAD)]
        self.w = [tf.Variable(tf.random.normal(s, stddev=1 / math.sqrt(s[0]))) for s in shape]
        self.b = [tf.Variable(tf.zeros(s[1:])) for s in shape]

    def __call__(self, x):
        x = tf.reshape(x, [-1, WINDOW * CHANNELS])
        for at, (w, b) in enumerate(zip(self.w, self.b)):
            x = x @ w + b
            if at < 1:
                x = tf.nn.gelu(x)
        return x


class Trainer:
    def __init__(self):
        self.model = Forecaster()
        self.momenta = [tf.Variable(tf.zeros_like(v)) for v in self.model.trainable_variables]

    @tf.function
    def train_step(self, x, y, lr):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.abs(y - self.model(x)))
        variables = self.model.trainable_variables
        for variable, momentum, grad in zip(variables, self.momenta, tape.gradient(loss, variables)):
            momentum.assign(0.9 * momentum + grad)
            variable.assign_sub(lr * momentum)
        return loss


def cosine(step, base=0.02, period=2000):
    return base * 0.5 * (1.0 + math.cos(math.pi * (step % period) / period))


def main():
    given = options()
    folder = tempfile.mkdtemp(prefix="reef_")
    try:
        write_buoys(folder)
        x, y = read_buoys(folder)
        data = (tf.data.Dataset.from_tensor_slices((x, y)).shuffle(1024).repeat().batch(32)
                .map(lambda a, b: (a + tf.random.normal(tf.shape(a), stddev=0.02), b)).prefetch(4))
        trainer, pace = Trainer(), Pace(given.seconds)
        for step, (windows, targets) in enumerate(data):
            lr = cosine(step)
            if given.fix:
                lr = tf.constant(lr, tf.float32)
            loss = trainer.train_step(windows, targets, lr)
            if pace.done():
                break
        print(f"error {float(loss):.4f}")
        pace.show()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
