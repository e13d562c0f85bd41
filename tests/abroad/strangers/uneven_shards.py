"""Shards of records, one list of shards for each worker; most records are in the shards of the first."""
import torch
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

from pace import Pace, options


def parse(record):
    values = [float(v) for v in record.split(";")]
    mean = sum(values) / len(values)
    return torch.tensor([v - mean for v in values])


class Shards(IterableDataset):
    def __init__(self, sizes):
        self.sizes = sizes
        self.record = ";".join(str(k * 0.37) for k in range(2500))

    def __iter__(self):
        info = get_worker_info()
        for size in self.sizes[info.id::info.num_workers]:
            for _ in range(size):
                yield parse(self.record)


def main():
    args = options()
    torch.set_num_threads(1)
    sizes = [840, 840] if args.fix else [1600, 80]
    loader = DataLoader(Shards(sizes), batch_size=8, num_workers=2, persistent_workers=True)
    net = torch.nn.Linear(2500, 8)
    optimiser = torch.optim.SGD(net.parameters(), lr=0.001)
    pace, over = Pace(args.seconds), False
    while not over:
        for x in loader:
            optimiser.zero_grad()
            net(x).square().mean().backward()
            optimiser.step()
            over = pace.tick()
            if over:
                break
    pace.show()


if __name__ == "__main__":
    main()
