"""Predicts the surge at harbour gauges from the last hours; the readings lie in one SQLite file."""
import queue
import random
import shutil
import sqlite3
import tempfile
import threading
from pathlib import Path

import numpy as np

from pace import Pace, options

GAUGES, MINUTES, LAGS = 800, 500, 24


def build(path, indexed):
    rng = np.random.default_rng(3)
    db = sqlite3.connect(path)
    db.execute("CREATE TABLE readings (gauge INTEGER, minute INTEGER, level REAL, wind REAL)")
    phase = rng.uniform(0, 6.28, GAUGES)
    for minute in range(MINUTES):
        level = np.sin(minute / 60 + phase) + 0.05 * rng.standard_normal(GAUGES)
        wind = rng.standard_normal(GAUGES)
        db.executemany("INSERT INTO readings VALUES (?, ?, ?, ?)",
                       zip(range(GAUGES), [minute] * GAUGES, level.tolist(), wind.tolist()))
    if indexed:
        db.execute("CREATE INDEX by_gauge ON readings (gauge, minute)")
    db.commit()
    db.close()


def history(db, gauge):
    rows = db.execute("SELECT level, wind FROM readings WHERE gauge = ? ORDER BY minute", (gauge,)).fetchall()
    return np.array(rows, dtype=np.float32)


def windows(table):
    lagged = np.lib.stride_tricks.sliding_window_view(table, LAGS, axis=0)[:-1].reshape(-1, 2 * LAGS)
    return lagged, table[LAGS:, 0]


class GaugeReader(threading.Thread):
    def __init__(self, path, out, stop):
        super().__init__(name="gauge-reader", daemon=True)
        self.path, self.out, self.stop = path, out, stop

    def run(self):
        db = sqlite3.connect(self.path)
        while not self.stop.is_set():
            parts = [windows(history(db, g)) for g in random.sample(range(GAUGES), 2)]
            batch = np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])
            while not self.stop.is_set():
                try:
                    self.out.put(batch, timeout=0.5)
                    break
                except queue.Full:
                    pass
        db.close()


class Surge:
    def __init__(self):
        self.weight = np.zeros(2 * LAGS, np.float32)

    def update(self, x, y, rate=0.01):
        error = x @ self.weight - y
        self.weight -= rate * (x.T @ error) / len(y)
        return float((error ** 2).mean())


def main():
    args = options()
    folder = Path(tempfile.mkdtemp(prefix="tides"))
    stop = threading.Event()
    try:
        build(folder / "tides.db", args.fix)
        batches = queue.Queue(maxsize=8)
        reader = GaugeReader(folder / "tides.db", batches, stop)
        reader.start()
        model, pace = Surge(), Pace(args.seconds)
        while True:
            loss = model.update(*batches.get())
            if pace.done():
                break
        stop.set()
        reader.join()
        print(f"loss {loss:.4f}")
        pace.show()
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
