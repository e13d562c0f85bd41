"""Tells leaf diseases apart on photographs. The workers decode the JPEGs; the random turns, blur and colours are
put on the whole batch in the training loop, as the tutorial for batched transforms shows.

--fix: more workers for the loader (num_workers 1 -> 2).
"""
import os
import shutil
import tempfile

import numpy as np
import torch
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, Dataset
from torchvision.transforms import v2

from pace import Pace, options

PHOTOS, SIDE, KINDS = 256, 112, 5


def take_photos(folder):
    rng = np.random.default_rng(21)
    for i in range(PHOTOS):
        leaf = rng.integers(0, 255, (7, 7, 3), dtype=np.uint8)
        leaf[..., i % 3] //= 1 + i % KINDS
        Image.fromarray(leaf).resize((SIDE, SIDE), Image.BICUBIC).save(os.path.join(folder, f"{i:03d}.jpg"))


class Leaves(Dataset):
    def __init__(self, folder):
        self.paths = sorted(os.path.join(folder, name) for name in os.listdir(folder))

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, i):
        with Image.open(self.paths[i]) as photo:
            return torch.from_numpy(np.array(photo.convert("RGB"))).permute(2, 0, 1), i % KINDS


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(3, 8, 5, 4), nn.ReLU(), nn.Conv2d(8, 16, 3, 2), nn.ReLU(),
                                      nn.AdaptiveAvgPool2d(1), nn.Flatten())
        self.head = nn.Linear(16, KINDS)

    def forward(self, photos):
        return self.head(self.features(photos))


def main():
    args = options()
    torch.set_num_threads(1)
    folder = tempfile.mkdtemp(prefix="leaves_")
    take_photos(folder)
    augment = v2.Compose([v2.ToDtype(torch.float32, scale=True), v2.RandomRotation(25, v2.InterpolationMode.BILINEAR),
                          v2.GaussianBlur(9, (0.5, 2.0)), v2.ColorJitter(0.3, 0.3, 0.3, 0.1)])
    loader = DataLoader(Leaves(folder), batch_size=32, shuffle=True, num_workers=2 if args.fix else 1,
                        persistent_workers=True)
    model = Classifier()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    pace, over = Pace(args.seconds), False
    try:
        while not over:
            for photos, kinds in loader:
                photos = augment(photos)
                loss = nn.functional.cross_entropy(model(photos), kinds)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                over = pace.done()
                if over:
                    break
        pace.show()
    finally:
        del loader
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
