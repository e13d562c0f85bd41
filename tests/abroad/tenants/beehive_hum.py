"""Does the hive swarm soon? Tones in its hum (Goertzel), a Keras model on top."""
import math
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import numpy as np

from pace import Pace, options

TONES = [110, 180, 240, 300, 420]


def tone(samples, hertz, rate=4000):
    turn = 2 * math.cos(2 * math.pi * hertz / rate)
    a = b = 0.0
    for s in samples:
        a, b = s + turn * a - b, a
    return math.log1p(abs(a * a + b * b - turn * a * b))


class Hives(keras.utils.PyDataset):
    def __init__(self, n=48, size=16, **kwargs):
        super().__init__(**kwargs)
        rng = np.random.default_rng(9)
        self.hum = rng.normal(0, 1, (128, 6000))
        self.swarm = rng.integers(0, 2, 128)
        self.n, self.size = n, size

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        picks = [(i * self.size + k) % 128 for k in range(self.size)]
        x = [[tone(self.hum[p].tolist(), hertz) for hertz in TONES] for p in picks]
        return np.array(x, dtype="float32"), self.swarm[picks].astype("float32")


class Clock(keras.callbacks.Callback):
    def __init__(self, pace):
        super().__init__()
        self.pace, self.over = pace, False

    def on_train_batch_end(self, batch, logs=None):
        self.over = self.pace.done()

    def on_epoch_end(self, epoch, logs=None):
        self.model.stop_training = self.over  # whole epochs, so that no generator is left half-way


def main():
    o = options()
    ways = dict(workers=2, use_multiprocessing=True, max_queue_size=8) if o.fix else {}
    net = keras.Sequential([keras.layers.Input((len(TONES),)), keras.layers.Dense(32, "relu"), keras.layers.Dense(1, "sigmoid")])
    net.compile("adam", "binary_crossentropy")
    pace = Pace(o.seconds)
    net.fit(Hives(**ways), epochs=10_000, verbose=0, callbacks=[Clock(pace)])
    pace.show()


if __name__ == "__main__":
    main()
