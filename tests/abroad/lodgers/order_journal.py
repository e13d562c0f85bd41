"""Recommends dishes to a restaurant's guests; after each batch every guest's loss goes into a journal that must survive a power cut.

--fix: the journal is made durable every 500 batches, not with each entry."""
import json
import os
import tempfile

import torch
from torch.utils.data import DataLoader, TensorDataset

from pace import Pace, options

GUESTS, DISHES = 2000, 300


class Journal:
    def __init__(self, path, every):
        self.file = open(path, "ab", buffering=0)
        self.every, self.batches = every, 0

    def entry(self, **fields):
        self.file.write(json.dumps(fields).encode() + b"\n")
        if self.every == 1:
            os.fsync(self.file.fileno())

    def batch_over(self):
        self.batches += 1
        if self.every > 1 and self.batches % self.every == 0:
            os.fsync(self.file.fileno())

    def close(self):
        os.fsync(self.file.fileno())
        self.file.close()


class Taste(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.guest, self.dish = torch.nn.Embedding(GUESTS, 16), torch.nn.Embedding(DISHES, 16)

    def forward(self, guest, dish):
        return (self.guest(guest) * self.dish(dish)).sum(1)


def main():
    args = options()
    torch.set_num_threads(1)
    torch.manual_seed(4)
    orders = TensorDataset(torch.randint(GUESTS, (40000,)), torch.randint(DISHES, (40000,)), torch.randint(2, (40000,)).float())
    loader = DataLoader(orders, batch_size=32, shuffle=True, num_workers=1, persistent_workers=True)
    model = Taste()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    # Beside the program: a temporary folder may be memory, and memory needs no fsync.
    with tempfile.TemporaryDirectory(dir=os.path.dirname(os.path.abspath(__file__))) as folder:
        journal = Journal(os.path.join(folder, "orders.jsonl"), 500 if args.fix else 1)
        pace, over = Pace(args.seconds), False
        while not over:
            for guest, dish, liked in loader:
                losses = torch.nn.functional.binary_cross_entropy_with_logits(model(guest, dish), liked, reduction="none")
                optimizer.zero_grad()
                losses.mean().backward()
                optimizer.step()
                for number, loss in zip(guest.tolist(), losses.tolist()):
                    journal.entry(guest=number, loss=round(loss, 5))
                journal.batch_over()
                over = pace.done()
                if over:
                    break
        pace.show()
        journal.close()


if __name__ == "__main__":
    main()
