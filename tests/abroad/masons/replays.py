"""Who wins? Positions from replays of a board game in SQLite, a small network, many short rounds (one per day of play)."""
import os
import shutil
import sqlite3
import tempfile

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, get_worker_info

from pace import Pace, options

CELLS = 81


def write_database(path, positions=256, openings=12000):
    rng = np.random.default_rng(8)
    with sqlite3.connect(path) as base:
        base.execute("create table position (number integer primary key, cells blob, won integer)")
        base.execute("create table opening (hash integer primary key, reply integer, value real)")
        base.executemany("insert into position values (?, ?, ?)",
                         [(n, rng.integers(0, 3, CELLS).astype(np.uint8).tobytes(), int(rng.integers(2))) for n in range(positions)])
        base.executemany("insert into opening values (?, ?, ?)",
                         ((n * 7919, n % CELLS, n / openings) for n in range(openings)))
    base.close()


class Replays(Dataset):
    def __init__(self, path, positions=256):
        self.path, self.positions = path, positions
        self.base = self.openings = None

    def __len__(self):
        return self.positions

    def connect(self):
        """A connection doesn't survive a fork, so each worker makes its own, and reads the book of openings."""
        self.base = sqlite3.connect(self.path)
        self.openings = {key: (reply, value) for key, reply, value in self.base.execute("select hash, reply, value from opening")}

    def __getitem__(self, number):
        cells, won = self.base.execute("select cells, won from position where number = ?", (number,)).fetchone()
        reply, value = self.openings[number * 7919]
        board = nn.functional.one_hot(torch.frombuffer(bytearray(cells), dtype=torch.uint8).long(), 3).float().flatten()
        return torch.cat([board, torch.tensor([reply / CELLS, value])]), won


def connect_worker(number):
    get_worker_info().dataset.connect()


def main():
    asked = options()
    torch.set_num_threads(1)
    folder = tempfile.mkdtemp(prefix="replays")
    try:
        path = os.path.join(folder, "replays.db")
        write_database(path)
        loader = DataLoader(Replays(path), batch_size=32, shuffle=True, num_workers=2, worker_init_fn=connect_worker,
                            persistent_workers=asked.fix)
        model = nn.Sequential(nn.Linear(CELLS * 3 + 2, 64), nn.ReLU(), nn.Linear(64, 2))
        optimizer = torch.optim.Adam(model.parameters(), 1e-3)
        pace, over, day = Pace(asked.seconds), False, 0
        while not over:
            day += 1
            for boards, won in loader:
                optimizer.zero_grad()
                nn.functional.cross_entropy(model(boards), won).backward()
                optimizer.step()
                over = pace.done()
                if over:
                    break
        print(f"{day} days")
        pace.show()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
