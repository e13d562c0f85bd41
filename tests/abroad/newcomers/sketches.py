"""Strokes drawn to bitmaps in the dataset, with the loader's default of no workers. --fix: num_workers=2."""
import torch
import numpy as np
from torch.utils.data import DataLoader, Dataset

from pace import Pace, options


def draw(strokes, size=48):
    canvas = np.zeros((size, size), np.float32)
    yy, xx = np.mgrid[0:size, 0:size].astype(np.float32)
    for (x0, y0), (x1, y1) in zip(strokes, strokes[1:]):
        dx, dy = x1 - x0, y1 - y0
        t = np.clip(((xx - x0) * dx + (yy - y0) * dy) / (dx * dx + dy * dy + 1e-6), 0, 1)
        distance = np.hypot(xx - (x0 + t * dx), yy - (y0 + t * dy))
        np.maximum(canvas, np.exp(-distance), out=canvas)
    return canvas


class Sketches(Dataset):
    def __len__(self):
        return 345_000

    def __getitem__(self, i):
        rng = np.random.default_rng(i)
        return torch.from_numpy(draw(rng.uniform(4, 44, (14, 2)))).unsqueeze(0), int(rng.integers(8))


class Classifier(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.features = torch.nn.Sequential(torch.nn.Conv2d(1, 16, 5, stride=2), torch.nn.ReLU(), torch.nn.Conv2d(16, 32, 3, stride=2), torch.nn.ReLU())
        self.head = torch.nn.Linear(32, 8)

    def forward(self, x):
        return self.head(self.features(x).mean((2, 3)))


def train(args):
    torch.set_num_threads(1)
    model = Classifier()
    optimizer = torch.optim.AdamW(model.parameters())
    loader = DataLoader(Sketches(), batch_size=16, shuffle=True, num_workers=2) if args.fix else DataLoader(Sketches(), batch_size=16, shuffle=True)
    pace = Pace(args.seconds)
    for images, classes in loader:
        loss = torch.nn.functional.cross_entropy(model(images), classes)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if pace.over():
            break
    pace.report()


if __name__ == "__main__":
    train(options())
