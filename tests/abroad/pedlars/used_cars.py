"""What is the car worth?  Prices of used cars: Ray Data prepares the rows, a small network learns."""
import logging
import os
import shutil
import tempfile

os.environ["RAY_DEDUP_LOGS"] = "0"
import numpy as np
import pandas as pd
import ray
import torch
from torch import nn

from pace import Pace, options

BRANDS = ["volta", "sirocco", "lindner", "kestrel"]


def write_adverts(path, rows=64_000):
    rng = np.random.default_rng(6)
    age, km = rng.uniform(0, 18, rows), rng.gamma(3, 30_000, rows)
    brand = rng.integers(0, len(BRANDS), rows)
    price = 30_000 * np.exp(-age / 7 - km / 300_000) * (1 + brand / 8) + rng.normal(0, 500, rows)
    pd.DataFrame({"age": age, "km": km, "brand": np.array(BRANDS)[brand], "price": price}).to_parquet(path)


def prepare(batch):
    brand = np.stack([batch["brand"] == b for b in BRANDS], 1).astype("float32")
    numbers = np.stack([batch["age"] / 10, np.log1p(batch["km"]) / 10], 1).astype("float32")
    return {"x": np.concatenate([numbers, brand], 1), "y": (batch["price"] / 10_000).astype("float32")}


def main():
    opts = options()
    torch.set_num_threads(1)
    folder = tempfile.mkdtemp(prefix="cars")
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
    ray.data.DataContext.get_current().enable_progress_bars = False
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    try:
        write_adverts(f"{folder}/adverts.parquet")
        cars = ray.data.from_pandas(pd.read_parquet(f"{folder}/adverts.parquet"))
        cars = cars.repartition(4 if opts.fix else 500).materialize()
        cars = cars.map_batches(prepare, batch_size=None)
        model = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 1))
        opt = torch.optim.Adam(model.parameters(), 1e-3)
        pace, over = Pace(opts.seconds), False
        while not over:
            for batch in cars.iter_torch_batches(batch_size=128):
                loss = nn.functional.mse_loss(model(batch["x"]).squeeze(1), batch["y"])
                opt.zero_grad()
                loss.backward()
                opt.step()
                over = pace.done()
                if over:
                    break
        pace.show()
    finally:
        ray.shutdown()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
