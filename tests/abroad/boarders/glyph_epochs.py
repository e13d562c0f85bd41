"""Many short epochs over a few hand-drawn glyphs of an old script, as one does where only forty are known.

--fix: persistent_workers=True."""
import json
import os
import random
import tempfile

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

from pace import Pace, options

SIDE, SIGNS = 48, 40


def draw(folder):
    """The strokes of each sign, as many scribes wrote them."""
    rng = random.Random(6)
    path = os.path.join(folder, "strokes.json")
    signs = {str(sign): [[[rng.uniform(2, SIDE - 3), rng.uniform(2, SIDE - 3)] for _ in range(24)] for _ in range(90)] for sign in range(SIGNS)}
    with open(path, "w") as file:
        json.dump(signs, file)
    return path


STROKES = {}


class OpenStrokes:
    def __init__(self, path):
        self.path = path

    def __call__(self, worker):
        with open(self.path) as file:
            STROKES.update({int(sign): np.array(strokes, np.float32) for sign, strokes in json.load(file).items()})


class Glyphs(Dataset):
    def __len__(self):
        return SIGNS

    def __getitem__(self, sign):
        rng = np.random.default_rng()
        strokes = STROKES[sign][rng.integers(len(STROKES[sign]))]
        turn = rng.normal(0, 0.1)
        points = (strokes - SIDE / 2) @ np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]], np.float32) + SIDE / 2
        page = np.zeros((1, SIDE, SIDE), np.float32)
        steps = np.linspace(0, 1, 16, dtype=np.float32)[:, None, None]
        line = (points[:-1] * (1 - steps) + points[1:] * steps).reshape(-1, 2).clip(0, SIDE - 1).astype(int)
        page[0, line[:, 0], line[:, 1]] = 1
        return torch.from_numpy(page), sign


def main():
    args = options()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        path = draw(folder)
        loader = DataLoader(Glyphs(), batch_size=8, shuffle=True, num_workers=2, worker_init_fn=OpenStrokes(path), persistent_workers=args.fix)
        model = nn.Sequential(nn.Conv2d(1, 16, 5, stride=3), nn.ReLU(), nn.Conv2d(16, 32, 3, stride=2), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(128, SIGNS))
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        pace = Pace(args.seconds)
        over = False
        while not over:
            for pages, signs in loader:
                loss = nn.functional.cross_entropy(model(pages), signs)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                over = over or pace.done()
        pace.show()


if __name__ == "__main__":
    main()
