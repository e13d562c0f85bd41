"""Click-through rate on an advertisement log in a parquet file: wide-and-deep style model, pandas behind a Dataset."""
import os
import tempfile

import numpy as np
import pandas as pd
import torch
from torch import nn
from torch.utils.data import BatchSampler, DataLoader, Dataset, RandomSampler

from pace import Pace, options

NUMERIC = ["price", "age_days", "position", "hour", "impressions", "dwell", "scroll", "bids"]
CATEGORIES = ["site", "device", "campaign", "country"]


def write_log(path, rows=60_000):
    rng = np.random.default_rng(9)
    columns = {name: rng.normal(size=rows).astype("float32") for name in NUMERIC}
    columns |= {name: rng.integers(0, 100, rows) for name in CATEGORIES}
    columns["clicked"] = (rng.random(rows) < 0.05).astype("float32")
    pd.DataFrame(columns).to_parquet(path)


class ClickLog(Dataset):
    def __init__(self, path):
        self.frame = pd.read_parquet(path)

    def __len__(self):
        return len(self.frame)

    def __getitem__(self, index):
        row = self.frame.iloc[index]
        return {
            "numeric": torch.tensor([row[name] for name in NUMERIC], dtype=torch.float32),
            "categories": torch.tensor([int(row[name]) for name in CATEGORIES]),
            "clicked": torch.tensor(row["clicked"], dtype=torch.float32),
        }


class ClickTable(Dataset):
    """The same log, as three arrays, and indexed by a list of rows."""

    def __init__(self, path):
        frame = pd.read_parquet(path)
        self.numeric = torch.from_numpy(frame[NUMERIC].to_numpy("float32", copy=True))
        self.categories = torch.from_numpy(frame[CATEGORIES].to_numpy("int64", copy=True))
        self.clicked = torch.from_numpy(frame["clicked"].to_numpy("float32", copy=True))

    def __len__(self):
        return len(self.clicked)

    def __getitem__(self, rows):
        return {"numeric": self.numeric[rows], "categories": self.categories[rows], "clicked": self.clicked[rows]}


class ClickModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.embeddings = nn.ModuleList(nn.Embedding(100, 8) for _ in CATEGORIES)
        self.deep = nn.Sequential(nn.Linear(len(NUMERIC) + 8 * len(CATEGORIES), 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, numeric, categories):
        parts = [embedding(categories[:, i]) for i, embedding in enumerate(self.embeddings)]
        return self.deep(torch.cat([numeric, *parts], dim=1)).squeeze(1)


def build_loader(path, by_table):
    if by_table:
        table = ClickTable(path)
        return DataLoader(table, sampler=BatchSampler(RandomSampler(table), 128, drop_last=True), batch_size=None)
    return DataLoader(ClickLog(path), batch_size=128, shuffle=True, drop_last=True)


def main():
    args = options()
    torch.set_num_threads(1)  # the model is tiny
    with tempfile.TemporaryDirectory(prefix="clicks-") as folder:
        path = os.path.join(folder, "log.parquet")
        write_log(path)
        loader = build_loader(path, args.fix)
        model = ClickModel()
        optimizer = torch.optim.Adagrad(model.parameters(), lr=0.05)
        criterion = nn.BCEWithLogitsLoss()
        pace, over = Pace(args.seconds), False
        while not over:
            for batch in loader:
                loss = criterion(model(batch["numeric"], batch["categories"]), batch["clicked"])
                optimizer.zero_grad(set_to_none=True)
                loss.backward()
                optimizer.step()
                over = pace.done()
                if over:
                    break
        pace.show()


if __name__ == "__main__":
    main()
