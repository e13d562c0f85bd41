"""Fraud among insurance claims: rare kinds of claim are drawn more often, and none twice in a batch."""
import os
import shutil
import tempfile

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, Sampler

from pace import Pace, options

CLAIMS, FIELDS = 1_500_000, 8


class Claims(Dataset):
    def __init__(self, path):
        self.path, self.table = path, None

    def __len__(self):
        return CLAIMS

    def __getitem__(self, i):
        if self.table is None:
            self.table = np.load(self.path, mmap_mode="r")
        row = np.array(self.table[i])
        return torch.from_numpy(row[:-1]), row[-1]


class BalancedClaims(Sampler):
    """Batches in which each kind of claim has the same chance; a claim's chance falls once it was drawn."""

    def __init__(self, kinds, batch_size, batches):
        self.kinds, self.batch_size, self.batches = kinds, batch_size, batches
        self.seen = np.zeros(len(kinds), dtype=np.float32)
        self.rng = np.random.default_rng(5)

    def __len__(self):
        return self.batches

    def __iter__(self):
        share = 1.0 / np.bincount(self.kinds)
        for _ in range(self.batches):
            weights = share[self.kinds] / (1.0 + self.seen)
            weights /= weights.sum()
            chosen = self.rng.choice(len(weights), size=self.batch_size, replace=False, p=weights)
            self.seen[chosen] += 1
            yield chosen.tolist()


def main():
    opts = options()
    torch.set_num_threads(1)
    folder = tempfile.mkdtemp(prefix="claims")
    try:
        rng = np.random.default_rng(1)
        table = rng.standard_normal((CLAIMS, FIELDS + 1), dtype=np.float32)
        table[:, -1] = table[:, 0] * table[:, 3] > 1.2
        path = os.path.join(folder, "claims.npy")
        np.save(path, table)
        kinds = rng.choice(8, size=CLAIMS, p=[0.6, 0.2, 0.1, 0.05, 0.02, 0.015, 0.01, 0.005])
        loader = DataLoader(Claims(path), batch_sampler=BalancedClaims(kinds, 64, 100_000),
                            num_workers=2 if opts.fix else 1, prefetch_factor=4)
        model = nn.Sequential(nn.Linear(FIELDS, 64), nn.ReLU(), nn.Linear(64, 1))
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        pace = Pace(opts.seconds)
        for fields, fraud in loader:
            loss = nn.functional.binary_cross_entropy_with_logits(model(fields).squeeze(1), fraud.float())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if pace.done():
                break
        pace.show()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
