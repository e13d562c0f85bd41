"""Next-day load of an electricity grid with Keras; a small dashboard picture is kept up to date beside the run."""
import os
import shutil
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

import keras
import numpy as np
from PIL import Image, ImageDraw

from pace import Pace, options

HISTORY, HORIZON = 168, 24


def load_curve(days=400):
    rng = np.random.default_rng(5)
    hour = np.arange(days * 24)
    load = 40 + 12 * np.sin(hour / 24 * 2 * np.pi) + 5 * np.sin(hour / 168 * 2 * np.pi) + rng.normal(0, 1.5, len(hour))
    return ((load - 40) / 12).astype("float32")


class Windows(keras.utils.PyDataset):
    def __init__(self, series, batch=64, steps=2000, **kwargs):
        super().__init__(**kwargs)
        self.windows = np.lib.stride_tricks.sliding_window_view(series, HISTORY + HORIZON)
        self.batch, self.steps = batch, steps
        self.rng = np.random.default_rng(6)

    def __len__(self):
        return self.steps

    def __getitem__(self, index):
        rows = self.windows[self.rng.integers(0, len(self.windows), self.batch)]
        return rows[:, :HISTORY, None], rows[:, HISTORY:]


class Dashboard(keras.callbacks.Callback):
    """dashboard.png: loss of the last batches, what the wall screen in the office shows."""

    def __init__(self, path, every):
        super().__init__()
        self.path, self.every, self.losses = path, every, []

    def on_train_batch_end(self, batch, logs=None):
        self.losses.append(float(logs["loss"]))
        if batch % self.every == 0:
            self.draw()

    def draw(self, width=1280, height=720):
        picture = Image.new("RGB", (width, height), "white")
        canvas = ImageDraw.Draw(picture)
        for y in range(0, height, 60):
            canvas.line([(0, y), (width, y)], fill=(225, 225, 225))
            canvas.text((4, y), f"{(height - y) / height:.2f}", fill="black")
        shown = self.losses[-width:]
        points = [(x * width / len(shown), height - height * min(v, 1.0)) for x, v in enumerate(shown)]
        if len(points) > 1:
            canvas.line(points, fill=(200, 30, 30), width=3)
        canvas.text((width - 180, 10), f"batch {len(self.losses)}  loss {self.losses[-1]:.4f}", fill="black")
        picture.resize((2 * width, 2 * height), Image.LANCZOS).save(self.path, optimize=True)


class Until(keras.callbacks.Callback):
    def __init__(self, pace):
        super().__init__()
        self.pace = pace

    def on_train_batch_end(self, batch, logs=None):
        if self.pace.done():
            self.model.stop_training = True


def build():
    model = keras.Sequential([keras.Input((HISTORY, 1)), keras.layers.Conv1D(16, 7, strides=3, activation="relu"),
                              keras.layers.Conv1D(32, 5, strides=3, activation="relu"),
                              keras.layers.GlobalAveragePooling1D(), keras.layers.Dense(64, activation="relu"),
                              keras.layers.Dense(HORIZON)])
    model.compile(optimizer="adam", loss="mse")
    return model


def main():
    args = options()
    folder = tempfile.mkdtemp(prefix="grid")
    try:
        pace = Pace(args.seconds)
        board = Dashboard(os.path.join(folder, "dashboard.png"), every=100 if args.fix else 1)
        build().fit(Windows(load_curve()), epochs=50, verbose=0, callbacks=[board, Until(pace)])
        pace.show()
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
