"""Matrix factorisation with Adam over dense gradients of big tables. The update of every row is what costs; --fix makes it sparse."""
import torch
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

from pace import Pace, options

USERS, ITEMS, WIDTH = 60_000, 20_000, 32


class Ratings(IterableDataset):
    def __init__(self, constant):
        self.constant = constant

    def __iter__(self):
        info = get_worker_info()
        gen = torch.Generator().manual_seed(info.id if info else 0)
        ready = None
        while True:
            if ready is None or not self.constant:
                ready = (torch.randint(USERS, (512,), generator=gen), torch.randint(ITEMS, (512,), generator=gen),
                         torch.rand(512, generator=gen) * 5)
            yield ready


def train_step(tables, optimizers, batch):
    user, item, stars = batch
    score = (tables["user"](user) * tables["item"](item)).sum(-1)
    loss = torch.nn.functional.mse_loss(score, stars)
    for o in optimizers:
        o.zero_grad()
    loss.backward()
    for o in optimizers:
        o.step()
    return loss.detach()


def main(args):
    torch.set_num_threads(1)
    tables = torch.nn.ModuleDict({"user": torch.nn.Embedding(USERS, WIDTH, sparse=args.fix),
                                  "item": torch.nn.Embedding(ITEMS, WIDTH, sparse=args.fix)})
    if args.fix:
        optimizers = [torch.optim.SparseAdam(list(tables.parameters()), lr=1e-3)]
    else:
        optimizers = [torch.optim.Adam(tables.parameters(), lr=1e-3)]
    pace = Pace(args.seconds)
    for batch in DataLoader(Ratings(args.fix2), batch_size=None, num_workers=1):
        train_step(tables, optimizers, batch)
        if pace.over():
            break
    pace.report()


if __name__ == "__main__":
    main(options())
