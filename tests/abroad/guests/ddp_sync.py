"""Two ranks, as torchrun would start them, train a wide text classifier with DistributedDataParallel over gloo on micro-batches of four.
--fix: no_sync for seven of eight micro-batches (gradient accumulation)."""
import contextlib
import os
import socket

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

from pace import Pace, options

BAGS, WORDS, HIDDEN, ACCUMULATE = 20000, 40, 1024, 8


class Texts(torch.utils.data.Dataset):
    def __init__(self):
        generator = torch.Generator().manual_seed(0)
        self.words = torch.randint(0, 2048, (BAGS, WORDS), generator=generator)
        self.labels = torch.randint(0, 2000, (BAGS,), generator=generator)

    def __len__(self):
        return BAGS

    def __getitem__(self, index):
        return self.words[index], self.labels[index]


def endless(loader, sampler):
    epoch = 0
    while True:
        sampler.set_epoch(epoch)
        yield from loader
        epoch += 1


def train(rank, port, args):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), RANK=str(rank), WORLD_SIZE="2")
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    texts = Texts()
    sampler = torch.utils.data.distributed.DistributedSampler(texts)
    loader = torch.utils.data.DataLoader(texts, batch_size=4, sampler=sampler)
    net = torch.nn.Sequential(torch.nn.EmbeddingBag(2048, HIDDEN), torch.nn.ReLU(), torch.nn.Linear(HIDDEN, 2000))
    model = torch.nn.parallel.DistributedDataParallel(net)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    pace = Pace(args.seconds)
    over = torch.zeros(1)
    for number, (words, labels) in enumerate(endless(loader, sampler), 1):
        last = number % ACCUMULATE == 0
        with contextlib.nullcontext() if last or not args.fix else model.no_sync():
            torch.nn.functional.cross_entropy(model(words), labels).backward()
        if last:
            optimizer.step()
            optimizer.zero_grad()
        over += float(pace.done())
        if last:
            dist.all_reduce(over)
            if over.item():
                break
    if rank == 0:
        pace.show()
    dist.destroy_process_group()


def main():
    args = options()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    peer = mp.get_context("spawn").Process(target=train, args=(1, port, args))
    peer.start()
    train(0, port, args)
    peer.join()


if __name__ == "__main__":
    main()
