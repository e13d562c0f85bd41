"""Classifies documents; a ProcessPoolExecutor weighs the words of each batch, by submit(corpus.batch, number), four batches ahead.
A bound method takes its object along. --fix: the corpus is the processes' own, from before the fork."""
import collections
import concurrent.futures
import itertools
import random

import numpy as np
import torch

from pace import Pace, options

WORDS, DOCUMENTS, LENGTH, BUCKETS = 60_000, 32, 40, 256
corpus = None


class Corpus:
    def __init__(self):
        self.names = [f"word{number * 7919 % 1000003}" for number in range(WORDS)]
        self.vocabulary = {name: number for number, name in enumerate(self.names)}
        self.weights = np.random.default_rng(0).random(WORDS, dtype=np.float32)

    def batch(self, number):
        draw = random.Random(number)
        table = np.zeros((DOCUMENTS, BUCKETS), dtype=np.float32)
        for document in range(DOCUMENTS):
            text = draw.choices(self.names, k=LENGTH)
            ids = [self.vocabulary[word] for word in text]
            table[document] = np.bincount(np.array(ids) % BUCKETS, self.weights[ids], BUCKETS)
        return table, table[:, 0] > 0.2


def batch(number):
    return corpus.batch(number)


def batches(pool, task):
    ahead = collections.deque()
    for number in itertools.count():
        ahead.append(pool.submit(task, number))
        if len(ahead) > 4:
            yield ahead.popleft().result()


def main():
    global corpus
    args = options()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    corpus = Corpus()
    model = torch.nn.Sequential(torch.nn.Linear(BUCKETS, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    with concurrent.futures.ProcessPoolExecutor(1) as pool:
        pace = Pace(args.seconds)
        for table, labels in batches(pool, batch if args.fix else corpus.batch):
            loss = torch.nn.functional.binary_cross_entropy_with_logits(model(torch.from_numpy(table))[:, 0], torch.from_numpy(labels).float())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if pace.done():
                break
        pace.show()
        pool.shutdown(cancel_futures=True)


if __name__ == "__main__":
    main()
