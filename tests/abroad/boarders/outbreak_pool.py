"""A surrogate for an epidemic model: a pool of processes simulates outbreaks, and a network learns their curves from the parameters.

--fix: six simulations are submitted ahead."""
import collections
import random
from concurrent.futures import ProcessPoolExecutor

import torch
from torch import nn

from pace import Pace, options

TOWNS, DAYS, RUNS = 12, 40, 160


def simulate(seed):
    """Outbreaks among towns, with their parameters."""
    rng = random.Random(seed)
    inputs, curves = [], []
    for _ in range(RUNS):
        spread, heal, travel = rng.uniform(0.1, 0.6), rng.uniform(0.05, 0.2), rng.uniform(0, 0.1)
        sick, well, curve = [0.0] * TOWNS, [1.0] * TOWNS, []
        sick[rng.randrange(TOWNS)] = 0.01
        for _ in range(DAYS):
            mean = sum(sick) / TOWNS
            for town in range(TOWNS):
                near = (1 - travel) * sick[town] + travel * mean
                new = min(well[town], spread * near * well[town])
                well[town] -= new
                sick[town] += new - heal * sick[town]
            curve.append(sum(sick) / TOWNS)
        inputs.append([spread, heal, travel])
        curves.append(curve)
    return inputs, curves


def outbreaks(pool, ahead):
    if not ahead:
        for seed in range(10**9):
            yield pool.submit(simulate, seed).result()
    waiting = collections.deque(pool.submit(simulate, seed) for seed in range(ahead))
    for seed in range(ahead, 10**9):
        yield waiting.popleft().result()
        waiting.append(pool.submit(simulate, seed))


def main():
    args = options()
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Linear(3, 128), nn.Tanh(), nn.Linear(128, 128), nn.Tanh(), nn.Linear(128, DAYS))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    pace = Pace(args.seconds)
    with ProcessPoolExecutor(max_workers=2) as pool:
        for inputs, curves in outbreaks(pool, 6 if args.fix else 0):
            inputs, curves = torch.tensor(inputs), torch.tensor(curves)
            for _ in range(3):
                loss = nn.functional.mse_loss(model(inputs), curves)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            if pace.done():
                break
        pace.show()
        pool.shutdown(wait=False, cancel_futures=True)


if __name__ == "__main__":
    main()
