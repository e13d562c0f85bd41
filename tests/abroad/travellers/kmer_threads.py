"""DNA reads: a ThreadPoolExecutor counts the k-mers of each read in plain Python, the main thread trains a classifier.
--fix is what the forum says: max_workers 2 -> 8."""
import collections
import concurrent.futures
import random

import torch

from pace import Pace, options

K, BATCH, AHEAD = 4, 16, 12


def reads(seed, count=400, length=800):
    chance = random.Random(seed)
    return ["".join(chance.choices("ACGT", weights=(1, 2, 2, 1) if n % 2 else (1, 1, 1, 1), k=length)) for n in range(count)]


def kmer_counts(read):
    counts = [0] * 4**K
    for start in range(len(read) - K + 1):
        code = 0
        for base in read[start:start + K]:
            code = code * 4 + "ACGT".index(base)
        counts[code] += 1
    return counts


def make_batch(pool_of_reads, seed):
    chance = random.Random(seed)
    picked = [chance.randrange(len(pool_of_reads)) for _ in range(BATCH)]
    return [kmer_counts(pool_of_reads[n]) for n in picked], [n % 2 for n in picked]


def batches(known, threads):
    with concurrent.futures.ThreadPoolExecutor(threads, thread_name_prefix="kmers") as pool:
        ahead = collections.deque(pool.submit(make_batch, known, seed) for seed in range(AHEAD))
        seed = AHEAD
        try:
            while True:
                counts, labels = ahead.popleft().result()
                ahead.append(pool.submit(make_batch, known, seed))
                seed += 1
                yield torch.tensor(counts, dtype=torch.float32), torch.tensor(labels)
        finally:
            pool.shutdown(cancel_futures=True)


def main():
    args = options()
    torch.set_num_threads(1)
    model = torch.nn.Sequential(torch.nn.Linear(4**K, 32), torch.nn.ReLU(), torch.nn.Linear(32, 2))
    optimizer = torch.optim.Adam(model.parameters())
    pace = Pace(args.seconds)
    for counts, labels in batches(reads(1), 8 if args.fix else 2):
        loss = torch.nn.functional.cross_entropy(model(counts), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if pace.done():
            break
    pace.show()


if __name__ == "__main__":
    main()
