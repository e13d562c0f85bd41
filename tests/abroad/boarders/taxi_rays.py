"""Predicts the fares of taxi trips; Ray Data makes the features from the positions on the way.

--fix: map_batches with arrays."""
import math
import gc
import os
import time

os.environ.setdefault("RAY_DEDUP_LOGS", "0")
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")

import logging

import numpy as np
import ray
import torch
from torch import nn

from pace import Pace, options

POINTS, BATCH = 60, 256


def trip_features(row):
    number = row["id"]
    east = [math.sin(number * 0.37 + k * 0.11) + 0.01 * k for k in range(POINTS)]
    north = [math.cos(number * 0.53 + k * 0.07) + 0.02 * k for k in range(POINTS)]
    way, turns, stops = 0.0, 0.0, 0
    bearing = None
    for k in range(1, POINTS):
        dx, dy = east[k] - east[k - 1], north[k] - north[k - 1]
        length = math.hypot(dx, dy)
        way += length
        stops += length < 0.05
        heading = math.atan2(dy, dx)
        if bearing is not None:
            turns += abs((heading - bearing + math.pi) % (2 * math.pi) - math.pi)
        bearing = heading
    direct = math.hypot(east[-1] - east[0], north[-1] - north[0])
    return {"features": np.array([way, turns, stops, direct], np.float32), "fare": np.float32(3 + 2 * way)}


def batch_features(batch):
    number, k = batch["id"][:, None], np.arange(POINTS)[None]
    east, north = np.sin(number * 0.37 + k * 0.11) + 0.01 * k, np.cos(number * 0.53 + k * 0.07) + 0.02 * k
    dx, dy = np.diff(east), np.diff(north)
    length = np.hypot(dx, dy)
    turn = np.abs((np.diff(np.arctan2(dy, dx)) + np.pi) % (2 * np.pi) - np.pi)
    way = length.sum(1)
    features = np.stack([way, turn.sum(1), (length < 0.05).sum(1), np.hypot(east[:, -1] - east[:, 0], north[:, -1] - north[:, 0])], 1)
    return {"features": features.astype(np.float32), "fare": (3 + 2 * way).astype(np.float32)}


def main():
    args = options()
    torch.set_num_threads(1)
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR, object_store_memory=400 << 20)
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    trips = ray.data.range(20_000_000, override_num_blocks=2000)
    trips = trips.map_batches(batch_features, batch_size=2048) if args.fix else trips.map(trip_features)
    model = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    pace = Pace(args.seconds)
    batches = iter(trips.iter_torch_batches(batch_size=BATCH, prefetch_batches=2, device="cpu"))
    for batch in batches:
        loss = nn.functional.mse_loss(model(batch["features"])[:, 0], batch["fare"])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if pace.done():
            break
    pace.show()
    del batches, batch, trips
    gc.collect()
    time.sleep(1)  # the stream's threads end
    ray.shutdown()


if __name__ == "__main__":
    main()
