"""An IterableDataset over a file of JSON lines, four workers. Each worker parses all lines and keeps every fourth event.
--fix: looks at the line's number first, and parses only its own."""
import json
import os
import random
import tempfile

import torch

from pace import Pace, options

KINDS = ["view", "click", "cart", "buy", "return", "share"]


def write_events(path):
    chance = random.Random(0)
    with open(path, "w") as out:
        for number in range(3000):
            trail = [{"kind": chance.choice(KINDS), "at": round(chance.random() * 1e5, 3), "price": round(chance.expovariate(0.02), 2),
                      "item": f"sku-{chance.randrange(9000):05d}"} for _ in range(24)]
            out.write(json.dumps({"user": number, "bought": trail[-1]["kind"] == "buy", "trail": trail}) + "\n")


def encode(event):
    rows = [(KINDS.index(step["kind"]), step["at"] / 1e5, step["price"] / 50, int(step["item"][4:]) / 9000) for step in event["trail"]]
    return torch.tensor(rows), float(event["bought"])


class Events(torch.utils.data.IterableDataset):
    def __init__(self, path, early):
        self.path, self.early = path, early

    def __iter__(self):
        worker = torch.utils.data.get_worker_info()
        while True:
            with open(self.path) as lines:
                for number, line in enumerate(lines):
                    mine = number % worker.num_workers == worker.id
                    if self.early and not mine:
                        continue
                    sample = encode(json.loads(line))
                    if mine:
                        yield sample


def main():
    args = options()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "events.jsonl")
        write_events(path)
        loader = torch.utils.data.DataLoader(Events(path, args.fix), batch_size=64, num_workers=4)
        model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(96, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        pace = Pace(args.seconds)
        for trails, bought in loader:
            loss = torch.nn.functional.binary_cross_entropy_with_logits(model(trails).squeeze(1), bought.float())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if pace.done():
                break
        pace.show()


if __name__ == "__main__":
    main()
