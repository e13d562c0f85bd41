"""Annotations in a sqlite file to which another process writes nearly always; readers wait for its lock. --fix: journal_mode=WAL."""
import multiprocessing
import os
import sqlite3
import tempfile
import time

import torch
from torch.utils.data import DataLoader, Dataset

from pace import Pace, options


def create(path, wal):
    db = sqlite3.connect(path)
    if wal:
        db.execute("PRAGMA journal_mode=WAL")
    db.execute("CREATE TABLE boxes (id INTEGER PRIMARY KEY, x REAL, y REAL, w REAL, h REAL, class INTEGER)")
    db.execute("CREATE TABLE edits (id INTEGER PRIMARY KEY, note TEXT)")
    db.executemany("INSERT INTO boxes VALUES (?, ?, ?, ?, ?, ?)", [(i, i % 7 / 7, i % 11 / 11, i % 5 / 5, i % 3 / 3, i % 4) for i in range(5000)])
    db.commit()
    db.close()


def annotator(path, wal):
    """Takes in what annotators change: a transaction of 40 ms, a pause of 12 ms."""
    db = sqlite3.connect(path, timeout=60, isolation_level=None)
    while True:
        db.execute("BEGIN IMMEDIATE" if wal else "BEGIN EXCLUSIVE")
        for n in range(4):
            db.execute("INSERT INTO edits (note) VALUES (?)", ("moved box %d" % n,))
            time.sleep(0.01)
        db.execute("COMMIT")
        time.sleep(0.012)


class Boxes(Dataset):
    def __init__(self, path):
        self.path, self.db, self.pid = path, None, None

    def __len__(self):
        return 10_000_000

    def __getitem__(self, i):
        if self.pid != os.getpid():
            self.db, self.pid = sqlite3.connect(self.path, timeout=60), os.getpid()
        row = self.db.execute("SELECT x, y, w, h, class FROM boxes WHERE id = ?", (i * 31 % 5000,)).fetchone()
        return torch.tensor(row[:4]), row[4]


if __name__ == "__main__":
    args = options()
    with tempfile.TemporaryDirectory() as folder:
        path = folder + "/annotations.db"
        create(path, args.fix)
        writer = multiprocessing.get_context("fork").Process(target=annotator, args=(path, args.fix), daemon=True)
        writer.start()
        torch.set_num_threads(1)
        head = torch.nn.Linear(4, 4)
        optimizer = torch.optim.SGD(head.parameters(), lr=0.1)
        pace = Pace(args.seconds)
        for boxes, classes in DataLoader(Boxes(path), batch_size=4, num_workers=2):
            loss = torch.nn.functional.cross_entropy(head(boxes), classes)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if pace.over():
                break
        pace.report()
        writer.kill()
        writer.join()
