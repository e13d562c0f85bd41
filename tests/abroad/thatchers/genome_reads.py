"""Which organism does a short read come from? A classifier over 4-mers, fed from a compressed FASTQ file."""
import gzip
import itertools
import os
import queue
import random
import tempfile
import threading

import numpy as np
import torch

from pace import Pace, options

LENGTH, K, BATCH = 150, 4, 256
BASES = "ACGT"
KMERS = {"".join(letters): n for n, letters in enumerate(itertools.product(BASES, repeat=K))}
CODES = np.zeros(256, dtype=np.int64)
for number, base in enumerate(BASES):
    CODES[ord(base)] = number


def write_fastq(path, reads=3000):
    rng = random.Random(7)
    with gzip.open(path, "wt", compresslevel=1) as out:
        for n in range(reads):
            kind = n % 4
            weights = [3 if i == kind else 2 for i in range(4)]
            bases = "".join(rng.choices(BASES, weights, k=LENGTH))
            quality = "".join(chr(33 + rng.choice((30, 34, 38))) for _ in range(LENGTH))
            out.write(f"@run{n}:{kind}\n{bases}\n+\n{quality}\n")


def records(path):
    while True:
        with gzip.open(path, "rt") as lines:
            for header in lines:
                bases = next(lines).rstrip()
                next(lines)
                yield int(header.rsplit(":", 1)[1]), bases, next(lines).rstrip()


def encode(bases, quality):
    kmers = [KMERS[bases[i : i + K]] for i in range(len(bases) - K + 1)]
    trust = []
    for i in range(len(bases) - K + 1):
        error = sum(10 ** ((33 - ord(c)) / 10) for c in quality[i : i + K])
        trust.append(max(0.0, 1.0 - error))
    return kmers, trust


def encode_arrays(bases, quality):
    codes = CODES[np.frombuffer(bases.encode(), dtype=np.uint8)]
    kmers = codes[:-3] * 64 + codes[1:-2] * 16 + codes[2:-1] * 4 + codes[3:]
    errors = np.power(10.0, (33.0 - np.frombuffer(quality.encode(), dtype=np.uint8)) / 10)
    error = errors[:-3] + errors[1:-2] + errors[2:-1] + errors[3:]
    return kmers, np.maximum(0.0, 1.0 - error)


class ReadFeeder(threading.Thread):
    def __init__(self, path, encoder):
        super().__init__(name="read-feeder", daemon=True)
        self.source, self.encoder = records(path), encoder
        self.batches, self.over = queue.Queue(maxsize=8), threading.Event()

    def run(self):
        while not self.over.is_set():
            kinds, kmers, trust = [], [], []
            for kind, bases, quality in itertools.islice(self.source, BATCH):
                one, two = self.encoder(bases, quality)
                kinds.append(kind)
                kmers.append(one)
                trust.append(two)
            weights = np.array(trust, dtype=np.float32)
            batch = torch.as_tensor(np.array(kmers)), torch.as_tensor(weights), torch.tensor(kinds)
            while not self.over.is_set():
                try:
                    self.batches.put(batch, timeout=0.5)
                    break
                except queue.Full:
                    continue


def main():
    args = options()
    torch.manual_seed(1)
    torch.set_num_threads(1)
    table, head = torch.nn.Embedding(4**K, 8), torch.nn.Linear(8, 4)
    optimizer = torch.optim.SGD([*table.parameters(), *head.parameters()], lr=0.5)
    with tempfile.TemporaryDirectory(prefix="genome") as folder:
        path = os.path.join(folder, "run.fastq.gz")
        write_fastq(path)
        feeder = ReadFeeder(path, encode_arrays if args.fix else encode)
        feeder.start()
        pace = Pace(args.seconds)
        while True:
            kmers, trust, kinds = feeder.batches.get()
            pooled = (table(kmers) * trust.unsqueeze(-1)).mean(dim=1)
            loss = torch.nn.functional.cross_entropy(head(pooled), kinds)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if pace.done():
                break
        feeder.over.set()
        feeder.join()
    pace.show()


if __name__ == "__main__":
    main()
