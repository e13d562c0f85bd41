"""Forecasts how full a flight gets. The bookings lie in a SQLite file; each worker claims a flight there (it raises
the flight's `seen` count, so that rarely seen ones can be drawn more often) and makes its features.

--fix: the workers only read; the training loop knows how often it saw a flight.
"""
import os
import shutil
import sqlite3
import tempfile

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

from pace import Pace, options

FLIGHTS, BOOKINGS, DAYS = 400, 150, 90


def fill(path):
    rng = np.random.default_rng(3)
    with sqlite3.connect(path) as db:
        db.execute("create table flight (id integer primary key, seats real, seen integer)")
        db.execute("create table booking (flight integer, day real, party integer)")
        db.executemany("insert into flight values (?, ?, 0)", [(i, float(rng.integers(90, 220))) for i in range(FLIGHTS)])
        days = rng.exponential(25, (FLIGHTS, BOOKINGS)).clip(0, DAYS - 1)
        db.executemany("insert into booking values (?, ?, ?)",
                       [(i, float(day), 1 + int(day) % 3) for i in range(FLIGHTS) for day in days[i]])
        db.execute("create index by_flight on booking (flight)")
    db.close()


def booking_curve(rows):
    days, parties = np.array(rows, dtype=np.float32).T
    return torch.from_numpy(np.histogram(days, DAYS, (0, DAYS), weights=parties)[0].cumsum()).float()


class Flights(Dataset):
    def __init__(self, path, count):
        self.path, self.count, self.db = path, count, None

    def __len__(self):
        return FLIGHTS

    def claim(self, i):
        if self.count:
            self.db.execute("begin immediate")
            self.db.execute("update flight set seen = seen + 1 where id = ?", (i,))
        rows = self.db.execute("select day, party from booking where flight = ?", (i,)).fetchall()
        seats = self.db.execute("select seats from flight where id = ?", (i,)).fetchone()[0]
        if self.count:
            self.db.execute("commit")
        return rows, seats

    def __getitem__(self, i):
        if self.db is None:
            self.db = sqlite3.connect(self.path, timeout=60, isolation_level=None)
        rows, seats = self.claim(i)
        return i, booking_curve(rows) / seats, torch.tensor(sum(party for _, party in rows) / seats)


def main():
    args = options()
    folder = tempfile.mkdtemp(prefix="seats_")
    path = os.path.join(folder, "bookings.db")
    fill(path)
    loader = DataLoader(Flights(path, not args.fix), batch_size=8, shuffle=True, num_workers=4, persistent_workers=True)
    model = nn.Sequential(nn.Linear(DAYS, 48), nn.Tanh(), nn.Linear(48, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    seen = np.zeros(FLIGHTS, int)
    pace, over = Pace(args.seconds), False
    try:
        while not over:
            for flights, curves, load in loader:
                seen[flights.numpy()] += 1
                loss = nn.functional.mse_loss(model(curves).squeeze(1), load)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                over = pace.done()
                if over:
                    break
        pace.show()
    finally:
        del loader
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
