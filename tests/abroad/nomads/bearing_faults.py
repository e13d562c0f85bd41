"""Bearing fault detection: vibration windows in parquet, features with Ray Data, a small torch classifier."""
import logging
import os
import shutil
import tempfile

os.environ.setdefault("RAY_DEDUP_LOGS", "0")
os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import ray
import torch
from torch import nn

from pace import Pace, options

WINDOW, BANDS, FAULTS = 256, 64, 3


def make_recordings(folder, files=8, rows=3000):
    rng = np.random.default_rng(3)
    ticks = np.arange(WINDOW) / WINDOW
    for part in range(files):
        fault = rng.integers(0, FAULTS, rows)
        signal = np.sin(2 * np.pi * (10 + 25 * fault)[:, None] * ticks) + rng.normal(0, 1.0, (rows, WINDOW))
        column = pa.FixedSizeListArray.from_arrays(pa.array(signal.astype(np.float32).ravel()), WINDOW)
        pq.write_table(pa.table({"signal": column, "fault": fault}), os.path.join(folder, f"part-{part}.parquet"))


def extract_features(row):
    """One window -> log energies of its frequency bands, crest factor and kurtosis."""
    signal = np.asarray(row["signal"], dtype=np.float64)
    signal = signal - signal.mean()
    power = np.abs(np.fft.rfft(signal * np.hanning(WINDOW)))[1:] ** 2
    bands = [np.log1p(power[k:k + WINDOW // 2 // BANDS].sum()) for k in range(0, WINDOW // 2, WINDOW // 2 // BANDS)]
    rms = np.sqrt(np.mean(signal ** 2))
    extra = [np.abs(signal).max() / rms, np.mean((signal / rms) ** 4)]
    return {"x": np.array(bands + extra, dtype=np.float32), "y": int(row["fault"])}


def extract_features_batch(batch):
    signal = np.stack(batch["signal"]).astype(np.float32)
    signal = signal - signal.mean(axis=1, keepdims=True)
    power = np.abs(np.fft.rfft(signal * np.hanning(WINDOW).astype(np.float32), axis=1))[:, 1:] ** 2
    bands = np.log1p(power.reshape(len(signal), BANDS, -1).sum(axis=2))
    rms = np.sqrt((signal ** 2).mean(axis=1))
    extra = np.stack([np.abs(signal).max(axis=1) / rms, ((signal / rms[:, None]) ** 4).mean(axis=1)], axis=1)
    return {"x": np.concatenate([bands, extra], axis=1).astype(np.float32), "y": batch["fault"]}


def train(dataset, pace):
    model = nn.Sequential(nn.Linear(BANDS + 2, 64), nn.ReLU(), nn.Linear(64, FAULTS))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    while True:
        for batch in dataset.iter_torch_batches(batch_size=64, prefetch_batches=4):
            loss = nn.functional.cross_entropy(model(batch["x"].float()), batch["y"].long())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if pace.done():
                return loss.item()


def main():
    args = options()
    torch.set_num_threads(1)
    folder = tempfile.mkdtemp(prefix="bearings_")
    ray.init(num_cpus=2, include_dashboard=False, logging_level=logging.ERROR, object_store_memory=400 * 2**20)
    ray.data.DataContext.get_current().enable_progress_bars = False
    try:
        make_recordings(folder)
        recordings = ray.data.read_parquet(folder, override_num_blocks=16)
        if args.fix:
            dataset = recordings.map_batches(extract_features_batch, batch_size=1000)
        else:
            dataset = recordings.map(extract_features)
        pace = Pace(args.seconds)
        print(f"last loss {train(dataset, pace):.3f}")
        pace.show()
    finally:
        ray.shutdown()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
