"""Recommends books: matrix factorisation with a small tower, trained through Accelerate."""
import numpy as np
import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, Dataset

from pace import Pace, options

READERS, BOOKS, WIDTH = 120_000, 60_000, 48


class Ratings(Dataset):
    def __init__(self, count=200_000):
        rng = np.random.default_rng(12)
        self.reader = rng.integers(0, READERS, count)
        self.book = (rng.pareto(1.2, count) * 50).astype(np.int64) % BOOKS
        self.stars = rng.integers(1, 6, count).astype(np.float32)

    def __len__(self):
        return len(self.stars)

    def __getitem__(self, i):
        return self.reader[i], self.book[i], self.stars[i]


class Taste(nn.Module):
    def __init__(self, sparse):
        super().__init__()
        self.readers = nn.Embedding(READERS, WIDTH, sparse=sparse)
        self.books = nn.Embedding(BOOKS, WIDTH, sparse=sparse)
        self.tower = nn.Sequential(nn.Linear(2 * WIDTH, 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, reader, book):
        both = torch.cat([self.readers(reader), self.books(book)], 1)
        return self.tower(both).squeeze(1)


def make_optimizers(model, sparse):
    if not sparse:
        return [torch.optim.Adam(model.parameters(), 1e-3)]
    tables = [*model.readers.parameters(), *model.books.parameters()]
    return [torch.optim.SparseAdam(tables, 1e-3), torch.optim.Adam(model.tower.parameters(), 1e-3)]


def main():
    args = options()
    accelerator = Accelerator(cpu=True)
    model = Taste(sparse=args.fix)
    loader = DataLoader(Ratings(), batch_size=128, shuffle=True)
    optimizers = make_optimizers(model, args.fix)
    model, loader, *optimizers = accelerator.prepare(model, loader, *optimizers)
    pace = Pace(args.seconds)
    while True:
        for reader, book, stars in loader:
            loss = nn.functional.mse_loss(model(reader, book), stars)
            for optimizer in optimizers:
                optimizer.zero_grad()
            accelerator.backward(loss)
            for optimizer in optimizers:
                optimizer.step()
            if pace.done():
                pace.show()
                return


if __name__ == "__main__":
    main()
