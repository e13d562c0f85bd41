"""Handball: does a clip show a throw at the goal? Frames of whole matches lie in one archive on the club's network share."""
import multiprocessing
import os
import shutil
import tempfile
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

from pace import Pace, options

FRAMES, HEIGHT, WIDTH = 8, 45, 80


class MatchArchive:
    """Clips one after the other in a file; one reader at a time, as the positions are shared."""

    ANSWER = 0.006  # of the share, for each clip

    def __init__(self, path):
        self.path, self.size = path, FRAMES * HEIGHT * WIDTH
        self.file = None
        self.turn = multiprocessing.Lock()

    def __len__(self):
        return os.path.getsize(self.path) // self.size

    def read(self, number):
        if self.file is None:
            self.file = open(self.path, "rb")
        with self.turn:
            self.file.seek(number * self.size)
            time.sleep(self.ANSWER)
            return self.file.read(self.size)


class ThrowClips(Dataset):
    def __init__(self, archive, labels):
        self.archive, self.labels = archive, labels

    def __len__(self):
        return 100_000

    def __getitem__(self, number):
        row = number % len(self.labels)
        clip = np.frombuffer(self.archive.read(row), np.uint8).reshape(1, FRAMES, HEIGHT, WIDTH)
        if number % 2:
            clip = clip[..., ::-1]
        return torch.from_numpy(clip.astype(np.float32) / 255), int(self.labels[row])


class ThrowNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv3d(1, 8, 3, stride=(2, 3, 3)), nn.ReLU(), nn.Conv3d(8, 16, 3, stride=2), nn.ReLU(), nn.AdaptiveAvgPool3d(1), nn.Flatten())
        self.head = nn.Linear(16, 2)

    def forward(self, clips):
        return self.head(self.body(clips))


def train(path, asked):
    archive = MatchArchive(path)
    labels = np.random.default_rng(7).integers(0, 2, len(archive))
    # --fix is what everybody advises first: more workers
    loader = DataLoader(ThrowClips(archive, labels), batch_size=8, shuffle=True, num_workers=6 if asked.fix else 2)
    model = ThrowNet()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    pace = Pace(asked.seconds)
    for clips, thrown in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(clips), thrown).backward()
        optimizer.step()
        if pace.done():
            break
    pace.show()


def main():
    asked = options()
    torch.set_num_threads(1)
    folder = tempfile.mkdtemp(prefix="handball")
    try:
        path = os.path.join(folder, "season.raw")
        with open(path, "wb") as file:
            for _ in range(300):
                file.write(os.urandom(FRAMES * HEIGHT * WIDTH))
        train(path, asked)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
