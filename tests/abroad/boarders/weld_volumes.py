"""Looks for pores in CT scans of welds: volumes in one HDF5 file, compressed, read by DataLoader workers.

The file's lock is there because "HDF5 isn't safe with several processes". --fix: each worker opens the file for itself and takes no lock."""
import contextlib
import multiprocessing
import os
import tempfile

import h5py
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

from pace import Pace, options

SIDE = 96


def scan(path, count=24):
    rng = np.random.default_rng(2)
    grid = np.mgrid[:SIDE, :SIDE, :SIDE].astype(np.float32)
    with h5py.File(path, "w") as file:
        volumes = file.create_dataset("volumes", (count, SIDE, SIDE, SIDE), "i2", chunks=(1, SIDE, SIDE, SIDE), compression="gzip", compression_opts=2)
        pores = rng.integers(0, 6, count)
        for number in range(count):
            volume = 1000 + 3 * grid[0] + rng.integers(0, 64, (SIDE,) * 3)
            for _ in range(pores[number]):
                place = rng.integers(20, SIDE - 20, 3)
                volume[tuple(slice(p - 4, p + 4) for p in place)] -= 600
            volumes[number] = volume.astype(np.int16)
        file["pores"] = pores


class Welds(Dataset):
    def __init__(self, path, lock, times=400):
        self.path, self.lock, self.times, self.file = path, lock, times, None
        with h5py.File(path, "r") as file:
            self.pores = file["pores"][:]

    def __len__(self):
        return len(self.pores) * self.times

    def __getitem__(self, index):
        index %= len(self.pores)
        with self.lock:
            if self.file is None:
                self.file = h5py.File(self.path, "r")
            volume = self.file["volumes"][index]
        faces = np.stack([volume[SIDE // 2], volume[:, SIDE // 2], volume[:, :, SIDE // 2], volume[::8].min(0)])
        return torch.from_numpy(faces.astype(np.float32) / 1000 - 1), int(self.pores[index])


def main():
    args = options()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "welds.h5")
        scan(path)
        lock = contextlib.nullcontext() if args.fix else multiprocessing.Lock()
        loader = DataLoader(Welds(path, lock), batch_size=4, shuffle=True, num_workers=4)
        model = nn.Sequential(nn.Conv2d(4, 8, 5, stride=4), nn.ReLU(), nn.Conv2d(8, 16, 3, stride=2), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 6))
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        pace = Pace(args.seconds)
        for faces, pores in loader:
            loss = nn.functional.cross_entropy(model(faces), pores)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if pace.done():
                break
        pace.show()


if __name__ == "__main__":
    main()
