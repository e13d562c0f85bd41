"""Which film next?  Matrix factorisation over ticket sales kept in Parquet."""
import shutil
import tempfile

import numpy as np
import polars as pl
import torch
from torch import nn

from pace import Pace, options

GUESTS, FILMS, WIDTH = 300_000, 4_000, 48


def write_sales(path, rows=400_000):
    rng = np.random.default_rng(5)
    pl.DataFrame({"guest": rng.integers(0, GUESTS, rows), "film": rng.zipf(1.3, rows) % FILMS,
                  "stars": rng.integers(1, 6, rows).astype("float32")}).write_parquet(path)


class Taste(nn.Module):
    def __init__(self, sparse):
        super().__init__()
        self.guest = nn.Embedding(GUESTS, WIDTH, sparse=sparse)
        self.film = nn.Embedding(FILMS, WIDTH, sparse=sparse)
        nn.init.normal_(self.guest.weight, std=0.05)
        nn.init.normal_(self.film.weight, std=0.05)

    def forward(self, guest, film):
        return 3 + (self.guest(guest) * self.film(film)).sum(1)


def batches(frame, size, rng):
    guest, film, stars = (torch.from_numpy(frame[c].to_numpy().copy()) for c in ("guest", "film", "stars"))
    while True:
        order = torch.from_numpy(rng.permutation(len(frame)))
        for start in range(0, len(order) - size, size):
            pick = order[start:start + size]
            yield guest[pick], film[pick], stars[pick]


def main():
    opts = options()
    folder = tempfile.mkdtemp(prefix="matinee")
    try:
        write_sales(f"{folder}/sales.parquet")
        frame = pl.read_parquet(f"{folder}/sales.parquet")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    model = Taste(sparse=opts.fix)
    make = torch.optim.SparseAdam if opts.fix else torch.optim.Adam
    opt = make(list(model.parameters()), lr=2e-3)
    pace = Pace(opts.seconds)
    for guest, film, stars in batches(frame, 1024, np.random.default_rng(1)):
        loss = nn.functional.mse_loss(model(guest, film), stars)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if pace.done():
            break
    pace.show()


if __name__ == "__main__":
    main()
