"""Trains on documents that are tokenised from shards; shard 0 holds the books, shard 1 the messages."""
import random

import torch
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

from meter import Meter, arguments

WORDS = [f"w{i}" for i in range(3000)]
INDEX = {word: i for i, word in enumerate(WORDS)}


class Documents(IterableDataset):
    """Each shard is a list of documents; a worker takes every second shard."""

    def __init__(self, mixed):
        draw = random.Random(1)
        books = [" ".join(draw.choices(WORDS, k=12000)) for _ in range(40)]
        messages = [" ".join(draw.choices(WORDS, k=1200)) for _ in range(40)]
        if mixed:
            both = [document for pair in zip(books, messages) for document in pair]
            draw.shuffle(both)
            self.shards = [both[::2], both[1::2]]
        else:
            self.shards = [books, messages]

    def __iter__(self):
        info = get_worker_info()
        mine = [document for shard in self.shards[info.id::info.num_workers] for document in shard]
        while True:
            for document in mine:
                ids = [INDEX.get(word.lower().strip(), 0) for word in document.split(" ")]
                yield torch.tensor(ids[:512])


def main():
    args = arguments()
    torch.set_num_threads(1)
    model = torch.nn.Sequential(torch.nn.EmbeddingBag(3000, 64), torch.nn.Linear(64, 2))
    optimiser = torch.optim.SGD(model.parameters(), lr=0.01)
    loader = DataLoader(Documents(args.fix), batch_size=16, num_workers=2)
    meter = Meter(args.seconds)
    for batch in loader:
        optimiser.zero_grad()
        model(batch).square().mean().backward()
        optimiser.step()
        if meter.tick():
            break
    meter.show()


if __name__ == "__main__":
    main()
