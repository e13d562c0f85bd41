"""Satellite tiles cut, turned and scaled by the loader; a small segmentation net."""
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

from pace import Pace, options


class Scene(Dataset):
    def __init__(self, tile=96):
        self.bands = np.random.default_rng(0).integers(0, 4000, (4, 1024, 1024), dtype=np.uint16)
        self.tile = tile

    def __len__(self):
        return 200_000

    def __getitem__(self, index):
        rng = np.random.default_rng(index)
        y, x = rng.integers(0, 1024 - self.tile, 2)
        cut = self.bands[:, y:y + self.tile, x:x + self.tile].astype(np.float32)
        low, high = np.percentile(cut, (2, 98), axis=(1, 2), keepdims=True)
        cut = np.clip((cut - low) / (high - low), 0, 1)
        ndvi = (cut[3] - cut[0]) / (cut[3] + cut[0] + 1e-3)
        image = np.rot90(np.concatenate([cut, ndvi[None]]), rng.integers(4), (1, 2))
        return np.ascontiguousarray(image, np.float32), np.ascontiguousarray(image[4, ::4, ::4] > 0.2).astype(np.int64)


class Segmenter(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(5, 12, 4, stride=4), nn.ReLU(), nn.Conv2d(12, 2, 3, padding=1))

    def forward(self, x):
        return self.net(x)


def main():
    args = options()
    torch.set_num_threads(1)
    model = Segmenter()
    optimiser = torch.optim.AdamW(model.parameters(), 1e-3)
    loader = DataLoader(Scene(), batch_size=8, num_workers=2 if args.fix else 0)
    pace = Pace(args.seconds)
    for image, mask in loader:
        loss = nn.functional.cross_entropy(model(image), mask)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        if pace.tick():
            break
    pace.show()


if __name__ == "__main__":
    main()
