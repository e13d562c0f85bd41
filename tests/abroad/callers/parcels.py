"""Parcel photos from the sorting belt: damaged or not. Map-style dataset, torchvision transforms, small CNN."""
import os
import shutil
import tempfile

import numpy as np
import torch
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, Dataset
from torchvision import transforms

from pace import Pace, options


def write_photos(folder, count=48):
    rng = np.random.default_rng(3)
    paths = []
    for i in range(count):
        coarse = rng.integers(0, 255, (40, 54, 3), dtype=np.uint8)
        photo = Image.fromarray(coarse).resize((864, 640), Image.BICUBIC)
        path = os.path.join(folder, f"parcel_{i:04d}_{i % 2}.jpg")
        photo.save(path, quality=90)
        paths.append(path)
    return paths


class ParcelPhotos(Dataset):
    def __init__(self, paths, length=100_000):
        self.paths, self.length = paths, length
        self.transform = transforms.Compose([
            transforms.RandomResizedCrop(96, scale=(0.3, 1.0)),
            transforms.RandomHorizontalFlip(),
            transforms.ColorJitter(0.2, 0.2, 0.2),
            transforms.ToTensor(),
            transforms.Normalize([0.48, 0.46, 0.41], [0.23, 0.22, 0.23]),
        ])

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        path = self.paths[index % len(self.paths)]
        photo = Image.open(path).convert("RGB")
        damaged = int(path.rsplit("_", 1)[1][0])
        return self.transform(photo), damaged


def build_model():
    return nn.Sequential(
        nn.Conv2d(3, 12, 5, stride=4), nn.ReLU(),
        nn.Conv2d(12, 24, 3, stride=2), nn.ReLU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(24, 2))


def main():
    args = options()
    torch.set_num_threads(1)  # the model is tiny
    folder = tempfile.mkdtemp(prefix="parcels-")
    try:
        dataset = ParcelPhotos(write_photos(folder))
        loader = DataLoader(dataset, batch_size=16, shuffle=True, num_workers=2 if args.fix else 1)
        model = build_model()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
        loss_fn = nn.CrossEntropyLoss()
        pace = Pace(args.seconds)
        for photos, damaged in loader:
            optimizer.zero_grad()
            loss = loss_fn(model(photos), damaged)
            loss.backward()
            optimizer.step()
            if pace.done():
                break
        pace.show()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
