"""Baskets aggregated with pandas group-bys in an iterable dataset; one worker. --fix: two."""
import numpy as np
import pandas as pd
import torch
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

from pace import Pace, options


class Baskets(IterableDataset):
    def __init__(self, rows=60_000):
        rng = np.random.default_rng(0)
        self.sales = pd.DataFrame({"basket": rng.integers(0, 6000, rows), "product": rng.integers(0, 300, rows),
                                   "price": rng.random(rows).round(2), "amount": rng.integers(1, 5, rows)})

    def summarise(self, part):
        part = part.assign(total=part.price * part.amount, group=part["product"] // 30)
        by_group = part.pivot_table(index="basket", columns="group", values="total", aggfunc="sum", fill_value=0)
        stats = part.groupby("basket").agg(n=("product", "size"), mean=("price", "mean"), top=("price", "max"), spread=("price", "std"))
        return by_group.reindex(columns=range(10), fill_value=0).join(stats).fillna(0)

    def __iter__(self):
        info = get_worker_info()
        number = info.id if info else 0
        while True:
            low = (number * 97) % 5900
            part = self.sales[(self.sales.basket >= low) & (self.sales.basket < low + 64)]
            yield torch.from_numpy(self.summarise(part).to_numpy(np.float32))
            number += info.num_workers if info else 1


class Trainer:
    def __init__(self, data, workers):
        self.loader = DataLoader(data, batch_size=None, num_workers=workers)
        self.model = torch.nn.Sequential(torch.nn.Linear(14, 64), torch.nn.ReLU(), torch.nn.Linear(64, 14))
        self.optimizer = torch.optim.Adam(self.model.parameters())

    def training_step(self, batch):
        loss = torch.nn.functional.smooth_l1_loss(self.model(batch), batch)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()

    def run(self, pace):
        for batch in self.loader:
            self.training_step(batch)
            if pace.over():
                break


if __name__ == "__main__":
    args = options()
    torch.set_num_threads(1)
    pace = Pace(args.seconds)
    Trainer(Baskets(), 2 if args.fix else 1).run(pace)
    pace.report()
