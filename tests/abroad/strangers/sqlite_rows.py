"""Trains on rows of an SQLite file into which another process writes."""
import os
import sqlite3
import tempfile

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

import stores
from pace import Pace, options

ROWS = 2000


def create(path):
    base = sqlite3.connect(path)
    base.execute("CREATE TABLE samples (id INTEGER PRIMARY KEY, label INTEGER, data BLOB)")
    base.execute("CREATE TABLE log (k INTEGER)")
    rng = np.random.default_rng(0)
    base.executemany("INSERT INTO samples VALUES (?, ?, ?)",
                     [(i, i % 5, rng.normal(size=128).astype(np.float32).tobytes()) for i in range(ROWS)])
    base.commit()
    base.close()


class Samples(Dataset):
    def __init__(self, path):
        self.path, self.base = path, None

    def __len__(self):
        return 10**6

    def __getitem__(self, index):
        raise NotImplementedError

    def __getitems__(self, indices):
        if self.base is None:
            self.base = sqlite3.connect(self.path, timeout=30)
        marks = ",".join("?" * len(indices))
        rows = self.base.execute(f"SELECT label, data FROM samples WHERE id IN ({marks})", [i % ROWS for i in indices]).fetchall()
        return [(np.frombuffer(data, np.float32).copy(), label) for label, data in rows]


def main():
    args = options()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        path = os.path.join(folder, "samples.db")
        create(path)
        stores.start("sqlite_writer.py", path, 0.001 if args.fix else 0.04)
        model = torch.nn.Linear(128, 5)
        optimiser = torch.optim.SGD(model.parameters(), 0.1)
        pace = Pace(args.seconds)
        for x, y in DataLoader(Samples(path), batch_size=16, num_workers=2):
            optimiser.zero_grad()
            torch.nn.functional.cross_entropy(model(x), y).backward()
            optimiser.step()
            if pace.tick():
                break
        pace.show()


if __name__ == "__main__":
    main()
