"""A recommender: batches of four, each a dict of six little tensors. --fix sends one packed tensor per batch instead."""
import torch
from torch.utils.data import DataLoader, Dataset

import meter

FIELDS = ("user", "item", "hour", "price", "clicks", "label")


class Clicks(Dataset):
    def __init__(self, rows=200_000):
        generator = torch.Generator().manual_seed(1)
        self.table = torch.randint(0, 1000, (rows, len(FIELDS)), generator=generator).float()

    def __len__(self):
        return len(self.table)

    def __getitem__(self, index):
        return self.table[index]


def as_dict(rows):
    table = torch.stack(rows)
    return {name: table[:, column].clone() for column, name in enumerate(FIELDS)}


def packed(rows):
    return torch.stack(rows)


def main():
    options = meter.arguments()
    torch.set_num_threads(1)
    users, items = torch.nn.Embedding(1000, 8), torch.nn.Embedding(1000, 8)
    loader = DataLoader(Clicks(), batch_size=4, shuffle=True, num_workers=2,
                        collate_fn=packed if options.fix else as_dict)
    clock = meter.Meter(options.seconds)
    over = False
    while not over:
        for batch in loader:
            if options.fix:
                batch = dict(zip(FIELDS, batch.unbind(1)))
            with torch.no_grad():
                score = (users(batch["user"].long()) * items(batch["item"].long())).sum(1)
                float((score - batch["label"]).square().mean())
            over = clock.tick()
            if over:
                break
    clock.show()


if __name__ == "__main__":
    main()
