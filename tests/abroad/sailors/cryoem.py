"""Particle picking for cryo-EM: junk/particle classifier on boxes kept in an HDF5 stack."""
import os
import shutil
import tempfile

import h5py
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

from pace import Pace, options

BOX = 96
PER_CHUNK = 64


def write_stack(path, chunk_rows, count=1024):
    rng = np.random.default_rng(4)
    with h5py.File(path, "w") as stack:
        boxes = stack.create_dataset("boxes", (count, BOX, BOX), "f4", compression="gzip",
                                     compression_opts=1, chunks=(chunk_rows, BOX, BOX))
        for start in range(0, count, PER_CHUNK):
            boxes[start:start + PER_CHUNK] = rng.normal(0, 20, (PER_CHUNK, BOX, BOX)).round()
        stack["is_particle"] = rng.integers(0, 2, count)


class ParticleStack(Dataset):
    def __init__(self, path, passes=200):
        self.path = path
        self.passes = passes
        self.stack = None
        with h5py.File(path, "r") as stack:
            self.labels = torch.from_numpy(stack["is_particle"][:])

    def __len__(self):
        return len(self.labels) * self.passes

    def __getitem__(self, index):
        if self.stack is None:   # each worker has its own handle
            self.stack = h5py.File(self.path, "r")
        index %= len(self.labels)
        box = torch.from_numpy(self.stack["boxes"][index])
        box = (box - box.mean()) / (box.std() + 1e-6)
        return box[None], self.labels[index]


class PickNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(1, 8, 7, stride=4), nn.ReLU(),
                                  nn.Conv2d(8, 16, 3, stride=2), nn.ReLU(), nn.AdaptiveAvgPool2d(1))
        self.head = nn.Linear(16, 2)

    def forward(self, boxes):
        return self.head(self.body(boxes).flatten(1))


def main():
    args = options()
    folder = tempfile.mkdtemp(prefix="cryoem_")
    path = os.path.join(folder, "particles.h5")
    try:
        write_stack(path, chunk_rows=1 if args.fix else PER_CHUNK)
        loader = DataLoader(ParticleStack(path), batch_size=16, shuffle=True, num_workers=2)
        model = PickNet()
        optimizer = torch.optim.Adam(model.parameters())
        pace = Pace(args.seconds)
        for boxes, labels in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(boxes), labels).backward()
            optimizer.step()
            if pace.done():
                break
        pace.show()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
