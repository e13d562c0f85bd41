"""Forecasts sales: each batch is one day of a polars LazyFrame over a CSV file, by an IterableDataset without workers.
--fix: collected once and parted by day."""
import itertools
import os
import tempfile

import numpy as np
import polars as pl
import torch

from pace import Pace, options

ROWS, DAYS = 80_000, 250
FIELDS = ["price", "stock", "promotion", "weather", "traffic"]


def write(path):
    draw = np.random.default_rng(0)
    columns = {"day": draw.integers(DAYS, size=ROWS), "shop": draw.integers(400, size=ROWS), "sold": draw.poisson(4, size=ROWS)}
    columns.update({name: draw.random(ROWS) for name in FIELDS})
    pl.DataFrame(columns).write_csv(path)


class Days(torch.utils.data.IterableDataset):
    def __init__(self, path, once):
        self.path, self.once = path, once

    def __iter__(self):
        frame = pl.scan_csv(self.path)
        if self.once:
            parts = {part["day"][0]: part for part in frame.collect().partition_by("day")}
        for day in itertools.cycle(range(DAYS)):
            part = parts[day] if self.once else frame.filter(pl.col("day") == day).collect()
            yield torch.from_numpy(part.select(FIELDS).to_numpy().astype(np.float32)), torch.from_numpy(part["sold"].to_numpy().astype(np.float32))


def main():
    args = options()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "sales.csv")
        write(path)
        loader = torch.utils.data.DataLoader(Days(path, args.fix), batch_size=None)
        model = torch.nn.Sequential(torch.nn.Linear(len(FIELDS), 48), torch.nn.ReLU(), torch.nn.Linear(48, 1))
        optimizer = torch.optim.Adam(model.parameters())
        pace = Pace(args.seconds)
        for rows, sold in loader:
            loss = torch.nn.functional.poisson_nll_loss(model(rows)[:, 0], sold)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if pace.done():
                break
        pace.show()


if __name__ == "__main__":
    main()
