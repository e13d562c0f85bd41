"""Knee MRI: finds cartilage in patches that a multiprocessing.Pool cuts out of a scanned volume."""
import functools
import multiprocessing
import os
import shutil
import tempfile

import numpy as np
import torch
from torch import nn

from pace import Pace, options

SIDE, PATCHES = 20, 8
scan = None


def write_scan(folder):
    rng = np.random.default_rng(3)
    volume = rng.normal(0, 1, (128, 192, 192)).astype(np.float32)
    z, y, x = np.ogrid[:128, :192, :192]
    volume += ((z - 64) ** 2 + (y - 96) ** 2 + (x - 96) ** 2 < 60 ** 2) * 2.0
    path = os.path.join(folder, "knee_017.npy")
    np.save(path, volume.astype(np.float32))
    return path


def cut_patches(volume, seed):
    """Some patches of one volume, normalised, mirrored at random, with the share of cartilage in each."""
    rng = np.random.default_rng(seed)
    patches = np.empty((PATCHES, 1, SIDE, SIDE, SIDE), np.float32)
    for i in range(PATCHES):
        corner = [int(rng.integers(0, size - SIDE)) for size in volume.shape]
        patch = volume[tuple(slice(c, c + SIDE) for c in corner)]
        if rng.random() < 0.5:
            patch = patch[:, :, ::-1]
        patches[i, 0] = (patch - patch.mean()) / (patch.std() + 1e-6)
    shares = (patches > 0.8).mean(axis=(1, 2, 3, 4)).astype(np.float32)
    return patches, shares


def open_scan(path):
    global scan
    scan = np.load(path, mmap_mode="r")


def cut_from_scan(seed):
    return cut_patches(scan, seed)


class CartilageNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv3d(1, 4, 3, stride=2), nn.ReLU(), nn.Conv3d(4, 8, 3, stride=2), nn.ReLU(),
                                  nn.AdaptiveAvgPool3d(1), nn.Flatten(), nn.Linear(8, 1))

    def forward(self, x):
        return self.body(x)[:, 0]


def main():
    given = options()
    torch.set_num_threads(1)
    folder = tempfile.mkdtemp(prefix="knee_")
    context = multiprocessing.get_context("fork")
    try:
        path = write_scan(folder)
        if given.fix:
            pool, cut = context.Pool(2, open_scan, (path,)), cut_from_scan
        else:
            pool, cut = context.Pool(2), functools.partial(cut_patches, np.load(path))
        model = CartilageNet()
        optimizer = torch.optim.SGD(model.parameters(), 0.05)
        pace, seed, over = Pace(given.seconds), 0, False
        while not over:
            for patches, shares in pool.imap(cut, range(seed, seed + 40)):
                loss = nn.functional.mse_loss(model(torch.from_numpy(patches)), torch.from_numpy(shares))
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                over = pace.done()
                if over:
                    break
            seed += 40
        pool.terminate()
        pool.join()
        print(f"mse {loss.item():.4f}")
        pace.show()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
