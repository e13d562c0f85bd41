"""Prioritised replay: a batch sampler keeps a sum tree in plain Python, draws from it and lowers what it drew; a DataLoader's worker fetches the rows.
--fix is what the forum says: prefetch_factor 2 -> 8."""
import random

import torch

from pace import Pace, options

LEAVES, BATCH = 1 << 17, 768


class PrioritySampler(torch.utils.data.Sampler):
    def __init__(self):
        self.chance = random.Random(0)
        self.sums = [0.0] * LEAVES + [self.chance.random() for _ in range(LEAVES)]
        for node in range(LEAVES - 1, 0, -1):
            self.sums[node] = self.sums[2 * node] + self.sums[2 * node + 1]

    def draw(self):
        rest, node = self.chance.random() * self.sums[1], 1
        while node < LEAVES:
            node *= 2
            if rest > self.sums[node]:
                rest -= self.sums[node]
                node += 1
        return node - LEAVES

    def update(self, leaf, priority):
        node = leaf + LEAVES
        change = priority - self.sums[node]
        while node:
            self.sums[node] += change
            node //= 2

    def __iter__(self):
        while True:
            drawn = [self.draw() for _ in range(BATCH)]
            for leaf in drawn:
                self.update(leaf, max(0.05, 0.98 * self.sums[leaf + LEAVES]))
            yield drawn


class Transitions(torch.utils.data.Dataset):
    def __init__(self):
        generator = torch.Generator().manual_seed(0)
        self.states = torch.randn(LEAVES, 24, generator=generator)
        self.rewards = self.states[:, :4].sum(1)

    def __len__(self):
        return LEAVES

    def __getitems__(self, indices):
        picked = torch.tensor(indices)
        return self.states[picked], self.rewards[picked]


def as_it_is(batch):
    return batch


def main():
    args = options()
    torch.set_num_threads(1)
    loader = torch.utils.data.DataLoader(Transitions(), batch_sampler=PrioritySampler(), collate_fn=as_it_is, num_workers=1,
                                         prefetch_factor=8 if args.fix else 2)
    critic = torch.nn.Sequential(torch.nn.Linear(24, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))
    optimizer = torch.optim.SGD(critic.parameters(), lr=0.01)
    pace = Pace(args.seconds)
    for states, rewards in loader:
        loss = torch.nn.functional.smooth_l1_loss(critic(states).squeeze(1), rewards)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if pace.done():
            break
    pace.show()


if __name__ == "__main__":
    main()
