"""Tumour / no tumour on 64 px tiles of histology slides, a ResNet from scratch.

The GPU (here: CPU) graph in our dashboard looks ragged, and somebody on the forum said
"you have num_workers=0, no wonder". --fix follows that: four persistent workers, deep prefetch.
"""
import pathlib
import tempfile

import numpy as np
import torch
import torch.nn.functional as F
import torchvision
from torch.utils.data import DataLoader, Dataset

from pace import Pace, options

TILE = 64
MEAN = torch.tensor([0.70, 0.53, 0.69]).view(3, 1, 1)
STD = torch.tensor([0.21, 0.24, 0.19]).view(3, 1, 1)


def export_slides(folder, slides=6, tiles=60):
    rng = np.random.default_rng(4)
    for n in range(slides):
        label = n % 2
        pixels = rng.integers(60 + 40 * label, 255, (tiles, 3, TILE, TILE), dtype=np.uint8)
        np.savez(folder / f"slide_{n:02d}.npz", tiles=pixels, label=np.full(tiles, label))


class Tiles(Dataset):
    def __init__(self, folder):
        slides = [np.load(path) for path in sorted(folder.glob("*.npz"))]
        self.tiles = torch.from_numpy(np.concatenate([slide["tiles"] for slide in slides]))
        self.labels = torch.from_numpy(np.concatenate([slide["label"] for slide in slides]))

    def __len__(self):
        return len(self.tiles)

    def __getitem__(self, i):
        tile = self.tiles[i].float().div_(255)
        if torch.rand(()) < 0.5:
            tile = tile.flip(-1)
        return (tile - MEAN) / STD, self.labels[i]


def build_model():
    model = torchvision.models.resnet18(weights=None, num_classes=2)
    model.maxpool = torch.nn.Identity()     # tiles are small, keep the resolution
    return model


def train_batch(model, optimizer, tiles, labels):
    optimizer.zero_grad(set_to_none=True)
    loss = F.cross_entropy(model(tiles), labels)
    loss.backward()
    optimizer.step()
    return loss.detach()


def main():
    args = options()
    torch.set_num_threads(1)    # as the cluster's job template has it
    extra = dict(num_workers=4, persistent_workers=True, prefetch_factor=4) if args.fix else dict(num_workers=0)
    with tempfile.TemporaryDirectory(prefix="slides") as folder:
        folder = pathlib.Path(folder)
        export_slides(folder)
        loader = DataLoader(Tiles(folder), batch_size=8, shuffle=True, drop_last=True, **extra)
        model = build_model().train()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
        pace, over, epoch = Pace(args.seconds), False, 0
        while not over:
            total = 0.0
            for tiles, labels in loader:
                total += train_batch(model, optimizer, tiles, labels)
                over = pace.done()
                if over:
                    break
            epoch += 1
        print(f"epoch {epoch} loss so far {float(total):.3f}")
        pace.show()


if __name__ == "__main__":
    main()
