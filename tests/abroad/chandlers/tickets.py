"""Routes support tickets to a queue; rare queues are oversampled by a weighted batch sampler."""
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, Sampler

from pace import Pace, options

QUEUES, VOCAB, WORDS = 12, 20_000, 10


class Tickets(Dataset):
    def __init__(self, count=1_200_000):
        rng = np.random.default_rng(7)
        share = 1 / np.arange(1, QUEUES + 1) ** 1.5
        self.queues = rng.choice(QUEUES, count, p=share / share.sum())
        self.words = (rng.integers(0, VOCAB // QUEUES, (count, WORDS), dtype=np.int32)
                      + self.queues[:, None].astype(np.int32) * (VOCAB // QUEUES))

    def __len__(self):
        return len(self.queues)

    def __getitem__(self, i):
        return torch.from_numpy(self.words[i]), int(self.queues[i])


class BalancedBatches(Sampler):
    """Batches in which every queue is about equally frequent."""

    def __init__(self, queues, batch_size, batches=100_000, cumulative=False):
        counts = np.bincount(queues, minlength=QUEUES)
        weights = 1.0 / counts[queues]
        self.weights = weights / weights.sum()
        self.batch_size, self.batches = batch_size, batches
        self.bounds = np.cumsum(self.weights) if cumulative else None
        self.rng = np.random.default_rng(11)

    def __len__(self):
        return self.batches

    def draw(self):
        if self.bounds is not None:
            picks = np.searchsorted(self.bounds, self.rng.random(self.batch_size))
            return np.minimum(picks, len(self.bounds) - 1)
        return self.rng.choice(len(self.weights), self.batch_size, p=self.weights)

    def __iter__(self):
        for _ in range(self.batches):
            yield self.draw().tolist()


class Router(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.EmbeddingBag(VOCAB, 24, sparse=True)
        self.out = nn.Linear(24, QUEUES)

    def forward(self, words):
        return self.out(torch.relu(self.words(words)))


def main():
    args = options()
    tickets = Tickets()
    sampler = BalancedBatches(tickets.queues, 48, cumulative=args.fix)
    loader = DataLoader(tickets, batch_sampler=sampler, num_workers=1, prefetch_factor=4)
    model = Router()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
    pace = Pace(args.seconds)
    for words, queues in loader:
        loss = nn.functional.cross_entropy(model(words), queues)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if pace.done():
            break
    pace.show()


if __name__ == "__main__":
    main()
