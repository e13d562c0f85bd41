"""Default risk of mortgages: online training with partial_fit on a pandas table."""
import os
import shutil
import tempfile

import numpy as np
import pandas as pd

from pace import Pace, options

REGIONS = ["north", "south", "east", "west", "islands"]
NUMBERS = ["amount", "income", "age", "rate", "term", "value", "debts", "children"]


def write_table(path, rows=20_000):
    rng = np.random.default_rng(2)
    table = pd.DataFrame({name: rng.gamma(3.0, 2.0, rows).round(3) for name in NUMBERS})
    table["region"] = rng.choice(REGIONS, rows)
    table["first_home"] = rng.random(rows) < 0.5
    table["defaulted"] = (table.amount * table.rate > table.income * 5).astype(int)
    table.to_csv(path, index=False)


class OnlineNetwork:
    """One hidden layer, trained by plain SGD; the interface is scikit-learn's."""

    def __init__(self, inputs, hidden=64, rate=0.01, seed=0):
        rng = np.random.default_rng(seed)
        self.w1 = rng.normal(0, inputs ** -0.5, (inputs, hidden))
        self.b1 = np.zeros(hidden)
        self.w2 = rng.normal(0, hidden ** -0.5, hidden)
        self.b2 = 0.0
        self.rate = rate

    def partial_fit(self, x, y):
        hidden = np.maximum(x @ self.w1 + self.b1, 0)
        risk = 1 / (1 + np.exp(-(hidden @ self.w2 + self.b2)))
        error = (risk - y) / len(y)
        back = np.outer(error, self.w2) * (hidden > 0)
        self.w2 -= self.rate * hidden.T @ error
        self.b2 -= self.rate * error.sum()
        self.w1 -= self.rate * x.T @ back
        self.b1 -= self.rate * back.sum(0)
        return self


def applicant_features(row):
    region = [1.0 if row["region"] == name else 0.0 for name in REGIONS]
    return [row[name] / 6.0 for name in NUMBERS] + region + [float(row["first_home"])]


def batch_by_row(table, index):
    rows = [table.iloc[i] for i in index]
    x = np.array([applicant_features(row) for row in rows])
    return x, np.array([row["defaulted"] for row in rows])


def to_arrays(table):
    region = np.stack([table.region == name for name in REGIONS], 1)
    first = table.first_home.to_numpy()[:, None]
    return np.hstack([table[NUMBERS].to_numpy() / 6.0, region, first]), table.defaulted.to_numpy()


def main():
    args = options()
    folder = tempfile.mkdtemp(prefix="mortgages_")
    try:
        path = os.path.join(folder, "mortgages.csv")
        write_table(path)
        table = pd.read_csv(path)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    rng = np.random.default_rng(9)
    model = OnlineNetwork(len(NUMBERS) + len(REGIONS) + 1)
    if args.fix:
        features, labels = to_arrays(table)
    pace = Pace(args.seconds)
    over = False
    while not over:
        order = rng.permutation(len(table))
        for start in range(0, len(order) - 255, 256):
            index = order[start:start + 256]
            x, y = (features[index], labels[index]) if args.fix else batch_by_row(table, index)
            model.partial_fit(x, y)
            over = pace.done()
            if over:
                break
    pace.show()


if __name__ == "__main__":
    main()
