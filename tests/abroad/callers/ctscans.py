"""Nodule classifier on CT volumes in webdataset shards; each step sees one random crop of each volume."""
import glob
import io
import os
import random
import tarfile
import tempfile

import numpy as np
import torch
import webdataset as wds
from torch import nn

from pace import Pace, options

SHAPE = (96, 224, 224)
CROP = 32


def make_shards(folder, shards=2, volumes=4):
    rng = np.random.default_rng(0)
    for s in range(shards):
        with tarfile.open(os.path.join(folder, f"ct-{s:03d}.tar"), "w") as tar:
            for v in range(volumes):
                volume = rng.integers(-1000, 1000, SHAPE, dtype=np.int16)
                buffer = io.BytesIO()
                np.save(buffer, volume)
                for suffix, body in (("npy", buffer.getvalue()), ("cls", str(v % 2).encode())):
                    member = tarfile.TarInfo(f"case{s}{v}.{suffix}")
                    member.size = len(body)
                    tar.addfile(member, io.BytesIO(body))
    return sorted(glob.glob(os.path.join(folder, "*.tar")))


def random_crop(volume):
    z, y, x = (random.randrange(n - CROP) for n in volume.shape)
    return volume[z:z + CROP, y:y + CROP, x:x + CROP]


def crop_sample(sample):
    volume, label = sample
    return random_crop(volume).copy(), label


def cases(samples):
    """Volumes differ in their number of slices, so they can't be stacked."""
    return list(samples)


def build_loader(urls, crop_early):
    dataset = wds.WebDataset(urls, resampled=True, shardshuffle=False).decode().to_tuple("npy", "cls")
    if crop_early:
        dataset = dataset.map(crop_sample)
    return wds.WebLoader(dataset, batch_size=2, collate_fn=cases, num_workers=2)


def main():
    args = options()
    torch.set_num_threads(1)  # the model is tiny
    with tempfile.TemporaryDirectory(prefix="ct-") as folder:
        loader = build_loader(make_shards(folder), args.fix)
        net = nn.Sequential(nn.Conv3d(1, 4, 3, stride=2), nn.ReLU(), nn.AdaptiveAvgPool3d(2), nn.Flatten(),
                            nn.Linear(32, 2))
        optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
        pace = Pace(args.seconds)
        for batch in loader:
            crops = np.stack([volume if args.fix else random_crop(volume) for volume, _ in batch])
            labels = torch.tensor([label for _, label in batch])
            x = torch.from_numpy(crops).float().unsqueeze(1) / 1000
            loss = nn.functional.cross_entropy(net(x), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if pace.done():
                break
        pace.show()
        del loader


if __name__ == "__main__":
    main()
