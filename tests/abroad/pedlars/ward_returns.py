"""Who comes back to the ward within a month?  Rows from DuckDB, runs tracked in an SQLite file."""
import shutil
import sqlite3
import tempfile
import time

import duckdb
import numpy as np
import torch
from torch import nn

from pace import Pace, options

VITALS = 20


def fill_warehouse(path, stays=40_000):
    cols = ", ".join(f"(random() - 0.5)::FLOAT AS v{i}" for i in range(VITALS))
    with duckdb.connect(path) as db:
        db.execute(f"CREATE TABLE stays AS SELECT {cols} FROM range({stays})")
        db.execute("ALTER TABLE stays ADD COLUMN back BIGINT")
        db.execute("UPDATE stays SET back = (v0 + v1 - v2 + 0.2 * random() > 0.2)::BIGINT")


def load_stays(path):
    with duckdb.connect(path, read_only=True) as db:
        cols = db.execute("SELECT * FROM stays").fetchnumpy()
    x = np.stack([np.asarray(cols[f"v{i}"]) for i in range(VITALS)], 1)
    return torch.from_numpy(x), torch.from_numpy(np.asarray(cols["back"]).copy())


class RunLog:
    """Metrics of a run, one row each, in a file that colleagues can open."""

    def __init__(self, path, every):
        self.db = sqlite3.connect(path)
        self.db.execute("CREATE TABLE metrics (run TEXT, key TEXT, value REAL, step INT, at REAL)")
        self.db.commit()
        self.every, self.waiting = every, []

    def log_metric(self, key, value, step):
        self.waiting.append(("ward-7", key, value, step, time.time()))
        if len(self.waiting) >= self.every:
            self.db.executemany("INSERT INTO metrics VALUES (?, ?, ?, ?, ?)", self.waiting)
            self.db.commit()
            self.waiting = []

    def close(self):
        self.db.close()


def main():
    opts = options()
    torch.set_num_threads(1)
    folder = tempfile.mkdtemp(prefix="ward")
    try:
        fill_warehouse(f"{folder}/ward.duckdb")
        x, y = load_stays(f"{folder}/ward.duckdb")
        log = RunLog(f"{folder}/runs.db", every=400 if opts.fix else 1)
        model = nn.Sequential(nn.Linear(VITALS, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2))
        opt = torch.optim.AdamW(model.parameters(), 1e-3)
        pace, over, step = Pace(opts.seconds), False, 0
        while not over:
            for pick in torch.randperm(len(x)).split(256):
                out = model(x[pick])
                loss = nn.functional.cross_entropy(out, y[pick])
                opt.zero_grad()
                loss.backward()
                norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                opt.step()
                hits = (out.argmax(1) == y[pick]).float().mean()
                for key, value in (("loss", loss.detach()), ("accuracy", hits), ("grad_norm", norm)):
                    log.log_metric(key, float(value), step)
                step += 1
                over = pace.done()
                if over:
                    break
        pace.show()
        log.close()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
