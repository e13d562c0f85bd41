"""Trains on sequences of different lengths; a batch is padded to its longest."""
import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

from meter import Meter, arguments


class Sequences(Dataset):
    def __init__(self):
        rng = np.random.default_rng(0)
        self.rows = [rng.integers(1, 2000, rng.integers(100, 900)).tolist() for _ in range(512)]

    def __len__(self):
        return 10_000_000

    def __getitem__(self, index):
        return self.rows[index % 512]


def collate(rows):
    longest = max(len(row) for row in rows)
    ids, mask = [], []
    for row in rows:
        pad = longest - len(row)
        ids.append([min(token, 1999) for token in row] + [0] * pad)
        mask.append([1.0 if token > 0 else 0.0 for token in row] + [0.0] * pad)
    return torch.tensor(ids), torch.tensor(mask)


def main():
    args = arguments()
    torch.set_num_threads(1)
    embed = torch.nn.Embedding(2000, 32)
    head = torch.nn.Linear(32, 2)
    optimiser = torch.optim.SGD([*embed.parameters(), *head.parameters()], lr=0.01)
    loader = DataLoader(Sequences(), batch_size=32, collate_fn=collate, num_workers=2 if args.fix else 0)
    meter = Meter(args.seconds)
    for ids, mask in loader:
        optimiser.zero_grad()
        hidden = embed(ids[:, :128]) * mask[:, :128, None]
        head(hidden.mean(1)).square().mean().backward()
        optimiser.step()
        if meter.tick():
            break
    meter.show()


if __name__ == "__main__":
    main()
