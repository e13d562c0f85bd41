"""A tabular regression with a wide network."""
import dataclasses

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

from pace import Pace, options


@dataclasses.dataclass
class Config:
    features: int = 64
    hidden: int = 1024
    batch: int = 256
    rate: float = 1e-3
    scale: bool = True


class Rows(Dataset):
    def __init__(self, config):
        rng = np.random.default_rng(3)
        self.x = rng.normal(size=(4096, config.features)).astype(np.float32)
        self.y = self.x[:, :4].sum(1)
        self.scale = config.scale

    def __len__(self):
        return 1_000_000

    def __getitem__(self, i):
        row = self.x[i % 4096]
        if self.scale:
            row = (row - row.mean()) / (row.std() + 1e-6)
        return row, self.y[i % 4096]


class Trainer:
    def __init__(self, config):
        self.config = config
        h = config.hidden
        self.model = nn.Sequential(nn.Linear(config.features, h), nn.GELU(), nn.Linear(h, h), nn.GELU(),
                                   nn.Linear(h, h), nn.GELU(), nn.Linear(h, 1))
        self.optimiser = torch.optim.AdamW(self.model.parameters(), lr=config.rate)

    def training_step(self, batch):
        x, y = batch
        loss = nn.functional.mse_loss(self.model(x).squeeze(1), y)
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()
        self.optimiser.step()
        return loss.item()

    def fit(self, loader, seconds):
        pace = Pace(seconds)
        running = 0.0
        for batch in loader:
            running = 0.9 * running + 0.1 * self.training_step(batch)
            if pace.tick():
                break
        pace.show()


if __name__ == "__main__":
    args = options()
    torch.set_num_threads(1)
    config = Config(hidden=256 if args.fix else 1024, scale=not args.fix2)
    loader = DataLoader(Rows(config), batch_size=config.batch, num_workers=1, shuffle=False)
    Trainer(config).fit(loader, args.seconds)
