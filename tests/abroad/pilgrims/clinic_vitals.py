"""Pulse and pressure of patients, straight out of the ward's SQLite file while the monitors still write to it."""
import multiprocessing
import os
import random
import shutil
import sqlite3
import tempfile
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset

from pace import Pace, options

PATIENTS, READINGS = 300, 120


def found(path, journal):
    db = sqlite3.connect(path)
    db.execute(f"PRAGMA journal_mode={journal}")
    db.execute("CREATE TABLE vitals (patient INTEGER, minute INTEGER, pulse REAL, upper REAL, lower REAL)")
    db.executemany("INSERT INTO vitals VALUES (?,?,?,?,?)",
                   ((p, m, random.gauss(75, 9), random.gauss(122, 12), random.gauss(80, 8))
                    for p in range(PATIENTS) for m in range(READINGS)))
    db.execute("CREATE INDEX who ON vitals (patient, minute)")
    db.commit()
    db.close()


def ward(path):
    """The ward's recorder: one transaction for a round through the beds."""
    db = sqlite3.connect(path, timeout=30, isolation_level=None)
    db.execute("PRAGMA synchronous=OFF")
    minute = READINGS
    while True:
        db.execute("BEGIN EXCLUSIVE")
        for bed in range(8):
            time.sleep(0.004)                # the monitor answers
            db.execute("INSERT INTO vitals VALUES (?,?,?,?,?)", (PATIENTS + bed, minute, 70, 120, 80))
        db.execute("COMMIT")
        minute += 1
        time.sleep(0.008)


class Histories(IterableDataset):
    def __init__(self, path):
        self.path = path

    def __iter__(self):
        db = sqlite3.connect(self.path, timeout=30)
        while True:
            group = []
            for patient in random.sample(range(PATIENTS), 16):
                group.append(db.execute("SELECT pulse, upper, lower FROM vitals WHERE patient = ? "
                                        "ORDER BY minute LIMIT ?", (patient, READINGS)).fetchall())
            yield torch.tensor(group)


def main():
    args = options()
    torch.set_num_threads(1)
    where = tempfile.mkdtemp(prefix="ward")
    path = os.path.join(where, "ward.db")
    found(path, "WAL" if args.fix else "DELETE")
    recorder = multiprocessing.get_context("fork").Process(target=ward, args=(path,), daemon=True)
    recorder.start()
    net = nn.GRU(3, 16, batch_first=True)
    adam = torch.optim.Adam(net.parameters(), 1e-3)
    pace = Pace(args.seconds)
    for group in DataLoader(Histories(path), batch_size=None, num_workers=2):
        group = (group - group.mean((0, 1))) / group.std((0, 1))
        out, _ = net(group[:, ::8])
        loss = (out[:, :-1, :3] - group[:, 8::8]).square().mean()
        adam.zero_grad()
        loss.backward()
        adam.step()
        if pace.done():
            break
    pace.show()
    recorder.terminate()
    recorder.join()
    shutil.rmtree(where, ignore_errors=True)


if __name__ == "__main__":
    main()
