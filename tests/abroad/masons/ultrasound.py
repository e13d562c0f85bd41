"""Plaque segmentation on carotid ultrasound: frames and masks in tar shards (webdataset), elastic deformation as augmentation."""
import io
import os
import shutil
import tarfile
import tempfile

import numpy as np
import torch
import webdataset as wds
from scipy.ndimage import gaussian_filter, map_coordinates, zoom
from torch import nn
from torch.utils.data import DataLoader

from pace import Pace, options

SIZE = 192
GRID = np.meshgrid(np.arange(SIZE), np.arange(SIZE), indexing="ij")


def write_shards(folder, shards=2, frames=60):
    rng = np.random.default_rng(5)
    for shard in range(shards):
        with tarfile.open(os.path.join(folder, f"carotid-{shard:03d}.tar"), "w") as tar:
            for number in range(frames):
                tissue = rng.normal(90, 25, (SIZE, SIZE)).clip(0, 255).astype(np.uint8)
                y, x = rng.integers(40, SIZE - 40, 2)
                plaque = ((GRID[0] - y) ** 2 + (GRID[1] - x) ** 2 < 20 ** 2).astype(np.uint8)
                tissue[plaque > 0] += 40
                for ending, array in (("frame.npy", tissue), ("mask.npy", plaque)):
                    body = io.BytesIO()
                    np.save(body, array)
                    entry = tarfile.TarInfo(f"{shard:03d}_{number:05d}.{ending}")
                    entry.size = len(body.getvalue())
                    tar.addfile(entry, io.BytesIO(body.getvalue()))
    return os.path.join(folder, "carotid-{000..%03d}.tar" % (shards - 1))


class ElasticDeform:
    """Simard et al.: a smooth random field moves the pixels."""

    def __init__(self, alpha=200.0, sigma=24.0, coarse=False):
        self.alpha, self.sigma, self.coarse = alpha, sigma, coarse
        self.pool = [zoom(np.random.uniform(-6, 6, (8, 8)), SIZE / 8, order=1) for _ in range(50)] if coarse else []

    def field(self):
        if self.coarse:  # grids of 8 x 8 arrows, enlarged once
            return self.pool[np.random.randint(len(self.pool))]
        return gaussian_filter(np.random.uniform(-1, 1, (SIZE, SIZE)), self.sigma, mode="constant") * self.alpha

    def __call__(self, sample):
        frame, mask = sample
        where = [GRID[0] + self.field(), GRID[1] + self.field()]
        moved = map_coordinates(frame.astype(np.float32), where, order=1 if self.coarse else 3, mode="reflect")
        truth = map_coordinates(mask, where, order=0, mode="reflect")
        return torch.from_numpy(moved.astype(np.float32))[None] / 255, torch.from_numpy(truth.astype(np.float32))[None]


def segmenter():
    return nn.Sequential(nn.Conv2d(1, 8, 8, stride=8), nn.ReLU(), nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(),
                         nn.Conv2d(16, 64, 1), nn.PixelShuffle(8))


def main():
    asked = options()
    torch.set_num_threads(1)
    folder = tempfile.mkdtemp(prefix="ultrasound")
    try:
        urls = write_shards(folder)
        frames = (wds.WebDataset(urls, shardshuffle=False).decode().to_tuple("frame.npy", "mask.npy")
                  .map(ElasticDeform(coarse=asked.fix)).repeat(1000))
        loader = DataLoader(frames, batch_size=8, num_workers=2)
        model = segmenter()
        optimizer = torch.optim.Adam(model.parameters(), 1e-3)
        pace = Pace(asked.seconds)
        for frame, mask in loader:
            loss = nn.functional.binary_cross_entropy_with_logits(model(frame), mask)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if pace.done():
                break
        pace.show()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
