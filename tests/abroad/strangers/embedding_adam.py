"""A click model: a large embedding table and a small head."""
import numpy as np
import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, IterableDataset

import pace

ITEMS, WIDTH = 150_000, 48


class Clicks(IterableDataset):
    def __init__(self, plain):
        self.plain = plain

    def __iter__(self):
        info = torch.utils.data.get_worker_info()
        rng = np.random.default_rng(info.id if info else 0)
        while True:
            if self.plain:
                yield np.zeros((64, 8), np.int64), np.zeros(64, np.float32)
                continue
            ids = np.minimum(rng.zipf(1.3, (64, 8)), ITEMS - 1)
            yield ids, (ids.min(1) < 3).astype(np.float32)


def build(sparse):
    table = torch.nn.Embedding(ITEMS, WIDTH, sparse=sparse)
    head = torch.nn.Linear(WIDTH, 1)
    if sparse:
        return table, head, [torch.optim.SparseAdam(list(table.parameters()), lr=1e-3),
                             torch.optim.Adam(head.parameters(), lr=1e-3)]
    return table, head, [torch.optim.Adam([*table.parameters(), *head.parameters()], lr=1e-3)]


def train():
    torch.set_num_threads(1)
    args = pace.options()
    table, head, optimisers = build(args.fix)
    loader = DataLoader(Clicks(args.fix2), batch_size=None, num_workers=1)
    for ids, clicked in pace.timed(loader, args.seconds):
        logits = head(table(ids).mean(1)).squeeze(1)
        loss = F.binary_cross_entropy_with_logits(logits, clicked)
        for o in optimisers:
            o.zero_grad()
        loss.backward()
        for o in optimisers:
            o.step()


if __name__ == "__main__":
    train()
