"""Random molecules as graphs, made by an executor of processes."""
import collections
import concurrent.futures
import random

import torch

from pace import Pace, options


def molecule(seed, atoms=60):
    draw = random.Random(seed)
    edges = {(k, draw.randrange(k)) for k in range(1, atoms)} | {(draw.randrange(atoms), draw.randrange(atoms)) for _ in range(20)}
    near = collections.defaultdict(set)
    for a, b in edges:
        near[a].add(b)
        near[b].add(a)
    distance = [[0] * atoms for _ in range(atoms)]
    for start in range(atoms):
        seen, front, steps = {start}, [start], 0
        while front:
            steps += 1
            front = [n for at in front for n in near[at] if n not in seen and not seen.add(n)]
            for n in front:
                distance[start][n] = steps
    return distance


def batch(number, size=4):
    return torch.tensor([molecule(number * size + k) for k in range(size)], dtype=torch.float32).numpy()


class GraphLoader:
    def __init__(self, processes):
        self.executor = concurrent.futures.ProcessPoolExecutor(max_workers=processes)
        self.waiting = collections.deque(self.executor.submit(batch, n) for n in range(8))
        self.number = 8

    def __iter__(self):
        return self

    def __next__(self):
        done = self.waiting.popleft().result()
        self.waiting.append(self.executor.submit(batch, self.number))
        self.number += 1
        return torch.from_numpy(done)

    def close(self):
        self.executor.shutdown(cancel_futures=True)


def main():
    args = options()
    torch.set_num_threads(1)
    loader = GraphLoader(2 if args.fix else 1)
    attention = torch.nn.MultiheadAttention(60, 4, batch_first=True)
    optimiser = torch.optim.SGD(attention.parameters(), 0.01)
    pace = Pace(args.seconds)
    for distances in loader:
        optimiser.zero_grad()
        attention(distances, distances, distances)[0].square().mean().backward()
        optimiser.step()
        if pace.tick():
            break
    pace.show()
    loader.close()


if __name__ == "__main__":
    main()
