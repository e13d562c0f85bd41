"""Boosts trees chunk by chunk: each chunk comes from a reader thread, and continues the booster by ten rounds. --fix: by two."""
import concurrent.futures

import numpy as np
import xgboost

from pace import Pace, options


def read_chunk(number, cheap, kept={}):
    if cheap and kept:
        return kept["chunk"]
    rng = np.random.default_rng(number)
    x = rng.random((4000, 20), dtype=np.float32)
    y = (x[:, 0] * x[:, 1] + 0.1 * rng.random(4000) > 0.3).astype(np.float32)
    kept["chunk"] = x, y
    return x, y


def chunks(cheap):
    with concurrent.futures.ThreadPoolExecutor(1) as reader:
        ahead = [reader.submit(read_chunk, n, cheap) for n in range(3)]
        number = 3
        while True:
            ahead.append(reader.submit(read_chunk, number, cheap))
            number += 1
            yield ahead.pop(0).result()


def main():
    args = options()
    params = {"objective": "binary:logistic", "max_depth": 7, "eta": 0.1, "nthread": 1, "tree_method": "hist",
              "max_bin": 128}
    booster, trained = None, 0
    pace = Pace(args.seconds)
    for x, y in chunks(args.fix2):
        matrix = xgboost.DMatrix(x, label=y, nthread=1)
        booster = xgboost.train(params, matrix, num_boost_round=2 if args.fix else 10, xgb_model=booster)
        trained += 1
        if trained % 6 == 0:
            booster = None                     # a new model for each window of chunks
        if pace.over():
            break
    pace.report()


if __name__ == "__main__":
    main()
