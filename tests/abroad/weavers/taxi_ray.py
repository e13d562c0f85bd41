"""Taxi fares: trips in parquet, read by Ray Data, into a small torch regression."""
import pathlib
import shutil
import tempfile

import numpy as np
import pandas as pd
import ray
import torch

from pace import Pace, options

FEATURES = ["distance", "hour", "weekday", "passengers", "pickup_x", "pickup_y", "dropoff_x", "dropoff_y",
            "rain", "temperature", "wind", "holiday", "tolls", "airport", "rush", "pressure"]
BATCH = 512


def make_trips(folder, files=4, rows=200_000):
    rng = np.random.default_rng(2)
    for part in range(files):
        trips = pd.DataFrame({name: rng.random(rows, np.float32) for name in FEATURES})
        trips["fare"] = (3 + 20 * trips["distance"] + 2 * trips["rain"]).astype("float32")
        trips.to_parquet(folder / f"trips{part}.parquet")


def batches_of_rows(trips):
    """Collects rows until a batch is full."""
    inputs, fares = [], []
    for trip in trips.iter_rows():
        inputs.append([trip[name] for name in FEATURES])
        fares.append(trip["fare"])
        if len(fares) == BATCH:
            yield torch.tensor(inputs, dtype=torch.float32), torch.tensor(fares, dtype=torch.float32)
            inputs, fares = [], []


def torch_batches(trips):
    for batch in trips.iter_torch_batches(batch_size=BATCH, drop_last=True):
        yield torch.stack([batch[name] for name in FEATURES], 1), batch["fare"]


class FareModel(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(len(FEATURES), 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))

    def forward(self, inputs):
        return self.layers(inputs).squeeze(1)


def train(trips, args):
    model = FareModel()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    pace = Pace(args.seconds)
    while True:
        for inputs, fares in (torch_batches if args.fix else batches_of_rows)(trips):
            loss = torch.nn.functional.mse_loss(model(inputs), fares)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if pace.done():
                return pace


def main():
    args = options()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="taxi"))
    torch.set_num_threads(1)
    try:
        make_trips(folder)
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR",
                 object_store_memory=300 * 2**20)
        ray.data.DataContext.get_current().enable_progress_bars = False
        trips = ray.data.read_parquet(str(folder)).materialize()
        train(trips, args).show()
    finally:
        ray.shutdown()
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
