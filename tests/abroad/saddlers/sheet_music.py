"""Guess the next chord of a piece: chords of sheet music in npy files, keras fit with a PyDataset."""
import os
import shutil
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
import keras
import numpy as np

from pace import Pace, options

CHORDS, BARS, BATCH = 3000, 16, 32


def engrave(folder, pieces=40, bars=600):
    rng = np.random.default_rng(11)
    for number in range(pieces):
        np.save(os.path.join(folder, f"opus{number:02}.npy"), (rng.zipf(1.4, size=bars) % CHORDS).astype(np.int32))


class Pieces(keras.utils.PyDataset):
    def __init__(self, folder, **kwargs):
        super().__init__(**kwargs)
        self.pieces = [np.load(os.path.join(folder, name)) for name in sorted(os.listdir(folder))
                       if name.endswith(".npy")]
        self.rng = np.random.default_rng(1)

    def __len__(self):
        return 400

    def __getitem__(self, index):
        bars = np.empty((BATCH, BARS + 1), np.int32)
        for row in bars:
            piece = self.pieces[self.rng.integers(len(self.pieces))]
            start = self.rng.integers(len(piece) - BARS - 1)
            row[:] = piece[start:start + BARS + 1]
        return bars[:, :-1], bars[:, -1]


class Metronome(keras.callbacks.Callback):
    def __init__(self, pace):
        super().__init__()
        self.pace = pace

    def on_train_batch_end(self, batch, logs=None):
        if self.pace.done():
            self.model.stop_training = True


def harmony():
    return keras.Sequential([
        keras.layers.Input((BARS,), dtype="int32"),
        keras.layers.Embedding(CHORDS, 64),
        keras.layers.Flatten(),
        keras.layers.Dense(256, activation="relu"),
        keras.layers.Dense(CHORDS),
    ])


def main():
    args = options()
    folder = tempfile.mkdtemp(prefix="music")
    try:
        engrave(folder)
        model = harmony()
        model.compile(keras.optimizers.Adam(1e-3), keras.losses.SparseCategoricalCrossentropy(from_logits=True))
        keep = keras.callbacks.ModelCheckpoint(os.path.join(folder, "harmony.keras"), verbose=0,
                                               save_freq="epoch" if args.fix else 4)
        pace = Pace(args.seconds)
        model.fit(Pieces(folder, workers=1), epochs=1000, verbose=0, callbacks=[keep, Metronome(pace)])
        pace.show()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
