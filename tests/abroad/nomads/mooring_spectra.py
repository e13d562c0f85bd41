"""Sea state from mooring buoys: spectra kept in one zip, read by a thread pool, a small torch regressor."""
import os
import shutil
import tempfile
import threading
import zipfile
from collections import deque
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch
from torch import nn

from pace import Pace, options

BUOYS, HOURS, BINS = 10, 48, 2048


def make_archive(path):
    rng = np.random.default_rng(31)
    frequency = np.linspace(0.03, 0.6, BINS)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_BZIP2, compresslevel=5) as archive:
        for buoy in range(BUOYS):
            height = rng.gamma(2.0, 1.0, HOURS)
            peak = rng.uniform(0.06, 0.2, HOURS)
            spectra = height[:, None] ** 2 * np.exp(-((frequency - peak[:, None]) / 0.05) ** 2)
            spectra = np.round(spectra + rng.random(spectra.shape) * 0.02, 2)
            table = np.concatenate([height[:, None], spectra], axis=1)
            archive.writestr(f"buoy{buoy:03d}.f64", table.astype(np.float64).tobytes())


class BuoyArchive:
    """ZipFile isn't documented as safe for several threads, so one reader at a time."""

    def __init__(self, path):
        self.archive = zipfile.ZipFile(path)
        self.names = self.archive.namelist()
        self.lock = threading.Lock()

    def read(self, name):
        with self.lock:
            raw = self.archive.read(name)
        return np.frombuffer(raw, np.float64).reshape(HOURS, BINS + 1)


class PerThreadArchive(BuoyArchive):
    def __init__(self, path):
        super().__init__(path)
        self.path, self.local = path, threading.local()

    def read(self, name):
        if not hasattr(self.local, "archive"):
            self.local.archive = zipfile.ZipFile(self.path)
        return np.frombuffer(self.local.archive.read(name), np.float64).reshape(HOURS, BINS + 1)


def load_hours(store, name):
    table = store.read(name)
    rows = table.astype(np.float32)
    return torch.from_numpy(rows[:, 1::8].copy()), torch.from_numpy(rows[:, 0].copy())


def train(store, pool, pace):
    model = nn.Sequential(nn.Linear(BINS // 8, 64), nn.ReLU(), nn.Linear(64, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    rng = np.random.default_rng(0)
    pending = deque(pool.submit(load_hours, store, rng.choice(store.names)) for _ in range(8))
    while True:
        spectra, height = pending.popleft().result()
        pending.append(pool.submit(load_hours, store, rng.choice(store.names)))
        loss = nn.functional.mse_loss(model(spectra)[:, 0], height)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if pace.done():
            return loss.item()


def main():
    args = options()
    torch.set_num_threads(1)
    folder = tempfile.mkdtemp(prefix="buoys_")
    try:
        path = os.path.join(folder, "spectra.zip")
        make_archive(path)
        store = PerThreadArchive(path) if args.fix else BuoyArchive(path)
        pace = Pace(args.seconds)
        with ThreadPoolExecutor(4, thread_name_prefix="buoys") as pool:
            print(f"loss {train(store, pool, pace):.3f}")
        pace.show()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
