"""Road sign recognition from dashcam frames, with the augmentation recipe of the last challenge."""
import pathlib
import shutil
import tempfile

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image
from torch import nn
from torchvision import datasets, transforms

from pace import Pace, options

CLASSES = ["stop", "yield", "limit30", "limit50", "parking", "crossing"]


def write_frames(root, per_class=8):
    rng = np.random.default_rng(3)
    for name in CLASSES:
        (root / name).mkdir()
        for n in range(per_class):
            coarse = rng.integers(0, 255, (48, 64, 3), dtype=np.uint8)
            Image.fromarray(coarse).resize((640, 480)).save(root / name / f"{n:03d}.jpg", quality=85)


def train_transform(resize_first):
    resize = [transforms.Resize((64, 64))]
    augment = [
        transforms.RandomPerspective(0.3, p=0.7),
        transforms.RandomRotation(12, interpolation=transforms.InterpolationMode.BILINEAR),
        transforms.ColorJitter(0.4, 0.4, 0.4, 0.1),
        transforms.GaussianBlur(5, sigma=(0.1, 2.0)),
    ]
    tail = [transforms.ToTensor(), transforms.Normalize([0.5] * 3, [0.25] * 3)]
    return transforms.Compose((resize + augment if resize_first else augment + resize) + tail)


class SignNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 12, 5, stride=2)
        self.conv2 = nn.Conv2d(12, 24, 3, stride=2)
        self.head = nn.Linear(24, len(CLASSES))

    def forward(self, x):
        x = F.relu(self.conv2(F.relu(self.conv1(x))))
        return self.head(x.mean((2, 3)))


def main():
    args = options()
    root = pathlib.Path(tempfile.mkdtemp(prefix="roadsigns_"))
    try:
        write_frames(root)
        frames = datasets.ImageFolder(root, transform=train_transform(args.fix))
        sampler = torch.utils.data.RandomSampler(frames, replacement=True, num_samples=100_000)
        loader = torch.utils.data.DataLoader(frames, batch_size=8, sampler=sampler, num_workers=2)
        net = SignNet()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.9)
        pace = Pace(args.seconds)
        for step, (x, y) in enumerate(loader):
            loss = F.cross_entropy(net(x), y)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            if step % 100 == 0:
                print(f"step {step} loss {loss.item():.3f}")
            if pace.done():
                break
        pace.show()
    finally:
        shutil.rmtree(root, ignore_errors=True)


if __name__ == "__main__":
    main()
