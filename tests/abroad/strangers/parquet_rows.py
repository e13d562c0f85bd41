"""Row groups of a Parquet file, turned into sequences."""
import os
import tempfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from torch.utils.data import DataLoader, Dataset

from pace import Pace, options


def write(path, groups=12, rows=16000):
    rng = np.random.default_rng(0)
    n = groups * rows
    table = pa.table({"user": rng.integers(0, 100, n), "item": rng.integers(0, 9000, n), "at": rng.random(n),
                      "name": [f"item {k % 977}" for k in range(n)]})
    pq.write_table(table, path, row_group_size=rows, compression="zstd")


class RowGroups(Dataset):
    def __init__(self, path, groups=12, length=32):
        self.path, self.groups, self.length, self.file = path, groups, length, None

    def __len__(self):
        return 1 << 22

    def __getitem__(self, k):
        if self.file is None:
            self.file = pq.ParquetFile(self.path)
        rows = self.file.read_row_group(k % self.groups, use_threads=False).sort_by([("user", "ascending"), ("at", "ascending")])
        sequences = {}
        for user, item, name in zip(rows["user"].to_pylist(), rows["item"].to_pylist(), rows["name"].to_pylist()):
            sequences.setdefault(user, []).append(item + len(name))
        return torch.tensor([(s + [0] * self.length)[:self.length] for s in sequences.values()][:64])


class Recommender(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.items, self.mix = torch.nn.Embedding(9100, 16, sparse=True), torch.nn.Linear(16, 16)

    def forward(self, x):
        e = self.items(x)
        return (self.mix(e[:, :-1].cumsum(1)) - e[:, 1:]).square().mean()


def main():
    args = options()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "events.parquet")
        write(path)
        model = Recommender()
        optimiser = torch.optim.SGD(model.parameters(), 0.01)
        pace = Pace(args.seconds)
        for x in DataLoader(RowGroups(path), batch_size=None, num_workers=2 if args.fix else 0):
            optimiser.zero_grad()
            model(x).backward()
            optimiser.step()
            if pace.tick():
                break
        pace.show()


if __name__ == "__main__":
    main()
