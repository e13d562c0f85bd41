"""One boosted model for each window of a stream of measurements."""
import concurrent.futures

import numpy as np
import xgboost as xgb

from pace import options, timed


class Windows:
    """Reads one window ahead on a thread."""

    def __init__(self, rows, plain):
        self.rows, self.plain = rows, plain
        self.rng = np.random.default_rng(0)
        self.kept = self.read(0)

    def read(self, k):
        if self.plain and k:
            return self.kept
        x = self.rng.normal(size=(self.rows, 16)).astype(np.float32)
        x = np.cumsum(x, axis=0) / 50
        return x, (x[:, 0] * x[:, 1] + np.sin(x[:, 2])).astype(np.float32)

    def __iter__(self):
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            k, ahead = 0, pool.submit(self.read, 0)
            while True:
                k += 1
                now, ahead = ahead.result(), pool.submit(self.read, k)
                yield now


def main():
    args = options()
    params = {"max_depth": 3 if args.fix else 9, "eta": 0.3, "nthread": 1, "tree_method": "hist", "verbosity": 0}
    errors = []
    for x, y in timed(Windows(3000, args.fix2), args.seconds):
        half = len(x) // 2
        booster = xgb.train(params, xgb.DMatrix(x[:half], y[:half]), num_boost_round=10)
        errors.append(float(np.abs(booster.predict(xgb.DMatrix(x[half:])) - y[half:]).mean()))


if __name__ == "__main__":
    main()
