# Leaf diseases from phone photos. Same augmentation as in the Kaggle notebook we started from.
import os
import tempfile

import numpy as np
import torch
import torch.nn as nn
from PIL import Image
from torch.utils.data import DataLoader
from torchvision import transforms
from torchvision.datasets import ImageFolder

from pace import Pace, options

DISEASES = ["healthy", "rust", "scab", "mildew"]


def make_photos(root, per_class=24):
    rng = np.random.default_rng(1)
    for k, name in enumerate(DISEASES):
        os.makedirs(os.path.join(root, name))
        for n in range(per_class):
            coarse = rng.integers(0, 255, (20, 28, 3), dtype=np.uint8)
            coarse[..., k % 3] //= 2
            photo = Image.fromarray(coarse).resize((560, 400), Image.BICUBIC)
            photo.save(os.path.join(root, name, f"IMG_{n:04d}.jpg"), quality=88)


augment = transforms.Compose([
    transforms.RandomRotation(20),
    transforms.RandomResizedCrop(112, scale=(0.3, 1.0)),
    transforms.RandomHorizontalFlip(),
    transforms.ColorJitter(0.3, 0.3, 0.3, 0.05),
    transforms.ToTensor(),
    transforms.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]),
])


def small_net():
    def block(a, b):
        return nn.Sequential(nn.Conv2d(a, b, 3, stride=2, padding=1), nn.BatchNorm2d(b), nn.ReLU())

    return nn.Sequential(nn.AvgPool2d(4), block(3, 8), block(8, 16), nn.AdaptiveAvgPool2d(1),
                         nn.Flatten(), nn.Linear(16, len(DISEASES)))


def one_worker_seed(worker_id):
    torch.set_num_threads(1)
    np.random.seed(torch.initial_seed() % 2**32)


def run(root, args):
    make_photos(root)
    data = ImageFolder(root, augment)
    loader = DataLoader(data, batch_size=16, shuffle=True, drop_last=True, persistent_workers=True,
                        num_workers=2 if args.fix else 1, worker_init_fn=one_worker_seed)
    torch.set_num_threads(1)
    model = small_net()
    opt = torch.optim.Adam(model.parameters(), 1e-3)
    criterion = nn.CrossEntropyLoss()
    pace = Pace(args.seconds)
    epoch = 0
    while True:
        running = 0.0
        for images, labels in loader:
            opt.zero_grad()
            loss = criterion(model(images), labels)
            loss.backward()
            opt.step()
            running += loss.item()
            if pace.done():
                pace.show()
                return
        epoch += 1
        print(f"epoch {epoch} loss {running / len(loader):.4f}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as root:
        run(root, options())
