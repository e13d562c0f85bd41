"""Predicts the wear of road segments from their sensor profile; a plain training loop over the survey's files."""
import shutil
import tempfile
from pathlib import Path

import numpy as np
import torch
from torch import nn

from pace import Pace, options

POINTS, BATCH = 96, 128


def survey(folder, segments=3000):
    """What the survey car leaves: a small file per road segment (profile, then its wear)."""
    rng = np.random.default_rng(11)
    profiles = rng.normal(size=(segments, POINTS)).astype(np.float32).cumsum(1) / 10
    wear = np.abs(np.diff(profiles, axis=1)).mean(1, keepdims=True) * 10
    everything = np.concatenate([profiles, wear], axis=1)
    for number, row in enumerate(everything):
        place = folder / f"district{number % 20:02}"
        place.mkdir(exist_ok=True)
        np.save(place / f"segment{number:05}.npy", row)
    return sorted(folder.glob("*/*.npy"))


class Segments:
    """The segments of the survey as they lie on the disk."""

    def __init__(self, files):
        self.files = files

    def __len__(self):
        return len(self.files)

    def rows(self, numbers):
        return np.stack([np.load(self.files[n]) for n in numbers])


class PackedSegments(Segments):
    """All segments in one file, made once."""

    def __init__(self, files, pack):
        super().__init__(files)
        np.save(pack, np.stack([np.load(f) for f in files]))
        self.table = np.load(pack, mmap_mode="r")

    def rows(self, numbers):
        return self.table[numbers]


def train(segments, seconds):
    model = nn.Sequential(nn.Linear(POINTS, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    rng = np.random.default_rng(2)
    pace = Pace(seconds)
    while True:
        batch = torch.from_numpy(np.asarray(segments.rows(rng.integers(len(segments), size=BATCH))))
        loss = nn.functional.mse_loss(model(batch[:, :POINTS]), batch[:, POINTS:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if pace.done():
            return pace


def main():
    args = options()
    torch.set_num_threads(1)
    folder = Path(tempfile.mkdtemp(prefix="roads"))
    try:
        files = survey(folder)
        segments = PackedSegments(files, folder / "all.npy") if args.fix else Segments(files)
        train(segments, args.seconds).show()
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
