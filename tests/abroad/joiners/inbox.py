"""Sorts a help desk's e-mail into queues: word counts from a pool of processes, a linear model on top."""
from collections import deque
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import torch
from torch import nn

from pace import Pace, options

VOCABULARY, MAILS, QUEUES = 16384, 256, 12


def read_mails(number):
    """The words (as numbers in the vocabulary) of one bundle of mails, and the queue of each."""
    rng = np.random.default_rng(number)
    queue = rng.integers(0, QUEUES, MAILS)
    words = (rng.zipf(1.4, (MAILS, 120)) * (queue[:, None] + 3)) % VOCABULARY
    return words, queue


def word_counts(number):
    words, queue = read_mails(number)
    counts = np.zeros((MAILS, VOCABULARY))
    np.add.at(counts, (np.arange(MAILS)[:, None], words), 1)
    return counts, queue


def word_numbers(number):
    words, queue = read_mails(number)
    return words.astype(np.int32), queue


def as_counts(words):
    counts = torch.zeros(MAILS, VOCABULARY)
    index = torch.from_numpy(words).long()
    return counts.scatter_add_(1, index, torch.ones(index.shape))


class Sorter(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(VOCABULARY, QUEUES)

    def forward(self, counts):
        return self.layer(torch.log1p(counts))


def bundles(pool, job, ahead=4):
    waiting = deque(pool.submit(job, n) for n in range(ahead))
    n = ahead
    while True:
        result = waiting.popleft().result()
        waiting.append(pool.submit(job, n))
        n += 1
        yield result


def main():
    opts = options()
    torch.set_num_threads(1)
    sorter = Sorter()
    optimizer = torch.optim.SGD(sorter.parameters(), 0.01)
    pace = Pace(opts.seconds)
    with ProcessPoolExecutor(2) as pool:
        for words, queue in bundles(pool, word_numbers if opts.fix else word_counts):
            counts = as_counts(words) if opts.fix else torch.from_numpy(words).float()
            loss = nn.functional.cross_entropy(sorter(counts), torch.from_numpy(queue))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if pace.done():
                break
        pool.shutdown(cancel_futures=True)
    print(f"loss {loss.item():.3f}")
    pace.show()


if __name__ == "__main__":
    main()
