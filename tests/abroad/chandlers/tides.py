"""Water level at a harbour from a week of hourly gauge readings, with an LSTM."""
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, RandomSampler

from pace import Pace, options

WEEK, GAUGES = 168, 6


class Gauges(Dataset):
    def __init__(self, hours=60_000):
        rng = np.random.default_rng(2)
        t = np.arange(hours)[:, None]
        period = np.array([12.42, 12.0, 23.93, 25.82, 12.66, 6.21])
        level = np.sin(2 * np.pi * t / period) + 0.1 * rng.standard_normal((hours, GAUGES))
        self.level = torch.from_numpy(level.astype(np.float32))

    def __len__(self):
        return len(self.level) - WEEK - 1

    def __getitem__(self, start):
        return self.level[start:start + WEEK], self.level[start + WEEK, 0]


class Harbour(nn.Module):
    def __init__(self, hidden=96):
        super().__init__()
        self.lstm = nn.LSTM(GAUGES, hidden, num_layers=2, batch_first=True)
        self.head = nn.Linear(hidden, 1)

    def forward(self, week):
        states, _ = self.lstm(week)
        return self.head(states[:, -1]).squeeze(1)


def make_loader(dataset, fix):
    sampler = RandomSampler(dataset, replacement=True, num_samples=1_000_000)
    if fix:
        return DataLoader(dataset, batch_size=32, sampler=sampler, num_workers=2, pin_memory=False,
                          persistent_workers=True, prefetch_factor=4)
    return DataLoader(dataset, batch_size=32, sampler=sampler)


def main():
    args = options()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    loader = make_loader(Gauges(), args.fix)
    model = Harbour()
    optimizer = torch.optim.Adam(model.parameters(), 2e-3)
    pace = Pace(args.seconds)
    for week, level in loader:
        loss = nn.functional.mse_loss(model(week), level)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if pace.done():
            break
    pace.show()


if __name__ == "__main__":
    main()
