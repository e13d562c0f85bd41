"""Liver patches from CT volumes, segmentation with a tiny 3-D net.

The loader gives whole volumes, and the loop cuts one random patch out of each (it wants to choose the place by
the current loss one day). --fix cuts the patch in the dataset.
"""
import tempfile
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

from pace import Pace, options

SHAPE, PATCH = (96, 144, 144), 24


def write_volumes(folder, count=8):
    rng = np.random.default_rng(9)
    for n in range(count):
        volume = rng.standard_normal(SHAPE, dtype=np.float32)
        volume[30:60, 40:100, 40:100] += 1.0 + n / 10
        np.save(folder / f"patient{n}.npy", volume)


def random_patch(volume, rng):
    z, y, x = (int(rng.integers(0, size - PATCH)) for size in SHAPE)
    return np.ascontiguousarray(volume[z:z + PATCH, y:y + PATCH, x:x + PATCH])


class Patients(Dataset):
    def __init__(self, folder, cut, repeat=500):
        self.volumes = [np.load(path) for path in sorted(folder.glob("*.npy"))]
        self.cut, self.repeat = cut, repeat

    def __len__(self):
        return len(self.volumes) * self.repeat

    def __getitem__(self, i):
        volume = self.volumes[i % len(self.volumes)]
        if self.cut:
            return random_patch(volume, np.random.default_rng(i))
        return volume


def as_list(samples):
    return samples          # volumes differ in size in the real data, so nothing is stacked


class Segmenter(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Conv3d(1, 4, 3, stride=2), nn.ReLU(), nn.Conv3d(4, 4, 3), nn.ReLU())
        self.out = nn.Linear(4, 1)

    def forward(self, patches):
        return self.out(self.layers(patches).mean((2, 3, 4)))


def main():
    args = options()
    torch.set_num_threads(1)
    rng = np.random.default_rng(10)
    with tempfile.TemporaryDirectory() as folder:
        write_volumes(Path(folder))
        patients = Patients(Path(folder), cut=args.fix)
    loader = DataLoader(patients, batch_size=4, shuffle=True, num_workers=2, collate_fn=as_list)
    model = Segmenter()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    pace, over = Pace(args.seconds), False
    while not over:
        for samples in loader:
            patches = samples if args.fix else [random_patch(volume, rng) for volume in samples]
            inputs = torch.from_numpy(np.stack(patches))[:, None]
            target = inputs.mean((2, 3, 4))
            loss = nn.functional.mse_loss(model(inputs), target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            over = pace.done()
            if over:
                break
    pace.show()


if __name__ == "__main__":
    main()
