"""Microscopy: cell crops in an HDF5 file, drawn at random, into a small convolutional net in torch."""
import pathlib
import shutil
import tempfile

import h5py
import numpy as np
import torch
from torch import nn

from pace import Pace, options

CROP, COUNT, BATCH = 48, 2048, 16


def write_crops(path, chunk):
    rng = np.random.default_rng(5)
    y, x = np.mgrid[:CROP, :CROP] - CROP / 2
    with h5py.File(path, "w") as file:
        crops = file.create_dataset("crops", (COUNT, CROP, CROP), "uint16", chunks=(chunk, CROP, CROP),
                                    compression="gzip", compression_opts=4)
        kinds = rng.integers(0, 3, COUNT)
        for start in range(0, COUNT, 256):
            radius = 6 + 5 * kinds[start:start + 256, None, None]
            cells = 3000 * np.exp(-(x * x + y * y) / (2 * radius ** 2))
            crops[start:start + 256] = cells + rng.integers(0, 64, (256, CROP, CROP))
        file["kinds"] = kinds


class CropReader:
    """Random crops of one file."""

    def __init__(self, path):
        self.file = h5py.File(path, "r")
        self.crops, self.kinds = self.file["crops"], self.file["kinds"][:]
        self.rng = np.random.default_rng(0)

    def read(self, index):
        crop = self.crops[index].astype(np.float32)
        return (crop - crop.mean()) / (crop.std() + 1e-3)

    def next_batch(self):
        picks = self.rng.integers(0, COUNT, BATCH)
        crops = np.stack([self.read(index) for index in picks])
        return torch.from_numpy(crops)[:, None], torch.from_numpy(self.kinds[picks])

    def close(self):
        self.file.close()


def cell_net():
    return nn.Sequential(nn.Conv2d(1, 8, 3, stride=2), nn.ReLU(), nn.Conv2d(8, 16, 3, stride=2), nn.ReLU(),
                         nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 3))


def main():
    args = options()
    torch.set_num_threads(1)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="cells"))
    try:
        write_crops(folder / "crops.h5", chunk=1 if args.fix else 256)
        reader = CropReader(folder / "crops.h5")
        net = cell_net()
        optimizer = torch.optim.AdamW(net.parameters(), lr=2e-3)
        pace, over = Pace(args.seconds), False
        while not over:
            crops, kinds = reader.next_batch()
            loss = nn.functional.cross_entropy(net(crops), kinds)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            over = pace.done()
        pace.show()
        reader.close()
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
