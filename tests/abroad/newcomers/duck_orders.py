"""Each batch is an aggregating duckdb query over a year of orders, by one worker with one thread. --fix: two workers."""
import duckdb
import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

from pace import Pace, options

QUERY = """
SELECT customer, count(*) n, sum(amount) total, avg(amount) mean, stddev(amount) spread, max(day) - min(day) span,
       quantile_cont(amount, 0.5) median
FROM orders WHERE customer % 97 = ? GROUP BY customer ORDER BY customer LIMIT 64
"""


class Customers(Dataset):
    def __init__(self, rows=400_000):
        rng = np.random.default_rng(0)
        self.columns = {"customer": rng.integers(0, 20_000, rows), "amount": rng.gamma(2, 20, rows), "day": rng.integers(0, 365, rows)}
        self.connection = None

    def __len__(self):
        return 97 * 10_000

    def connect(self):
        connection = duckdb.connect(":memory:", config={"threads": 1})
        frame = __import__("pandas").DataFrame(self.columns)
        connection.execute("CREATE TABLE orders AS SELECT * FROM frame")
        return connection

    def __getitem__(self, i):
        if self.connection is None:
            self.connection = self.connect()
        found = self.connection.execute(QUERY, [i % 97]).fetchnumpy()
        return torch.from_numpy(np.stack([np.nan_to_num(np.asarray(found[c], np.float32)) for c in ("n", "total", "mean", "spread", "span", "median")], 1))


if __name__ == "__main__":
    args = options()
    torch.set_num_threads(1)
    model = torch.nn.Sequential(torch.nn.Linear(5, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
    optimizer = torch.optim.Adam(model.parameters())
    pace = Pace(args.seconds)
    for rows in DataLoader(Customers(), batch_size=None, num_workers=2 if args.fix else 1):
        loss = torch.nn.functional.huber_loss(model(rows[:, [0, 2, 3, 4, 5]]).squeeze(1), rows[:, 1])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if pace.over():
            break
    pace.report()
