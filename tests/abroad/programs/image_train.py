"""Trains on images that are augmented in numpy."""
import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

from meter import Meter, arguments


def resize(image, size):
    y = np.linspace(0, image.shape[0] - 2, size)
    x = np.linspace(0, image.shape[1] - 2, size)
    y0, x0 = y.astype(int), x.astype(int)
    fy, fx = (y - y0)[:, None, None], (x - x0)[None, :, None]
    a, b = image[y0][:, x0], image[y0][:, x0 + 1]
    c, d = image[y0 + 1][:, x0], image[y0 + 1][:, x0 + 1]
    return (a * (1 - fx) + b * fx) * (1 - fy) + (c * (1 - fx) + d * fx) * fy


class Photos(Dataset):
    def __init__(self):
        self.raw = np.random.default_rng(0).integers(0, 255, (32, 256, 256, 3), dtype=np.uint8)

    def __len__(self):
        return 10_000_000

    def __getitem__(self, index):
        rng = np.random.default_rng(index)
        image = self.raw[index % 32].astype(np.float32) / 255
        top, left = rng.integers(0, 32, 2)
        image = resize(image[top:top + 224, left:left + 224], 96)
        if rng.random() < 0.5:
            image = image[:, ::-1]
        image = image * rng.uniform(0.8, 1.2) + rng.normal(0, 0.02, image.shape)
        return torch.from_numpy(np.ascontiguousarray(image.transpose(2, 0, 1), dtype=np.float32)), index % 10


def main():
    args = arguments()
    torch.set_num_threads(1)
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3, stride=4), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(1),
                                torch.nn.Flatten(), torch.nn.Linear(8, 10))
    optimiser = torch.optim.SGD(model.parameters(), lr=0.01)
    loader = DataLoader(Photos(), batch_size=8, num_workers=2 if args.fix else 1)
    meter = Meter(args.seconds)
    for images, labels in loader:
        optimiser.zero_grad()
        torch.nn.functional.cross_entropy(model(images), labels).backward()
        optimiser.step()
        if meter.tick():
            break
    meter.show()


if __name__ == "__main__":
    main()
