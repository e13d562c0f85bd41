"""Text shards of very different sizes, one worker each: most of the time just the owner of the big one works. --fix deals lines out evenly."""
import json
import re

import torch
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

from pace import Pace, options

SIZES = [3200, 200]


def line(n):
    return json.dumps({"id": n, "text": " ".join(f"tok{(n * k) % 211}" for k in range(1, 260)), "stars": n % 5})


def features(text):
    record = json.loads(text)
    counts = [0.0] * 211
    for token in re.findall(r"tok(\d+)", record["text"]):
        counts[int(token)] += 1.0
    total = sum(counts)
    return torch.tensor([c / total for c in counts]), record["stars"]


class Shards(IterableDataset):
    def __init__(self, shards, evenly):
        self.shards, self.evenly = shards, evenly

    def __iter__(self):
        info = get_worker_info()
        if self.evenly:
            lines = [l for shard in self.shards for l in shard][info.id::info.num_workers]
        else:
            lines = [l for shard in self.shards[info.id::info.num_workers] for l in shard]
        for text in lines:
            yield features(text)


if __name__ == "__main__":
    args = options()
    torch.set_num_threads(1)
    shards = [[line(n) for n in range(size)] for size in SIZES]
    model = torch.nn.Linear(211, 5)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    pace = Pace(args.seconds)
    going = True
    while going:
        for counts, stars in DataLoader(Shards(shards, args.fix), batch_size=8, num_workers=2):
            loss = torch.nn.functional.cross_entropy(model(counts), stars)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if pace.over():
                going = False
                break
    pace.report()
