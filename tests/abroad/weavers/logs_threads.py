"""Anomalies in server logs: threads parse the lines into features, a small torch net scores them."""
import collections
import concurrent.futures
import pathlib
import random
import re
import shutil
import tempfile
import zlib

import torch

from pace import Pace, options

BUCKETS, LINES = 256, 256
LINE = re.compile(r"(\d+)-(\d+)-(\d+) (\d+):(\d+):(\d+) (\w+) \[([\w.]+)\] (.*)")
LEVELS = {"DEBUG": 0, "INFO": 1, "WARN": 2, "ERROR": 3}


def write_logs(folder, files=8, lines=2000):
    rng = random.Random(6)
    verbs = ["opened", "closed", "retried", "dropped", "accepted", "flushed"]
    for part in range(files):
        with open(folder / f"node{part}.log", "w") as out:
            for _ in range(lines):
                out.write(f"2024-05-{rng.randint(1, 30):02d} {rng.randint(0, 23):02d}:{rng.randint(0, 59):02d}:07 "
                          f"{rng.choice(list(LEVELS))} [svc.{rng.randint(0, 40)}] {rng.choice(verbs)} connection "
                          f"{rng.randint(0, 9999)} from 10.0.{rng.randint(0, 255)}.{rng.randint(0, 255)} "
                          f"after {rng.randint(1, 900)} ms in pool {rng.randint(0, 30)}\n")


def parse_line(line):
    year, month, day, hour, minute, second, level, service, message = LINE.match(line).groups()
    row = [0.0] * BUCKETS
    row[0] = (int(hour) * 60 + int(minute)) / 1440
    row[1] = LEVELS[level] / 3
    words = re.sub(r"\d+", "#", message).split() + [service]
    for word in words:
        for size in (3, 4):
            for at in range(len(word) - size + 1):
                row[2 + zlib.crc32(word[at:at + size].encode()) % (BUCKETS - 2)] += 1.0
    return row, float(level == "ERROR")


def parse_block(lines):
    rows, labels = zip(*[parse_line(line) for line in lines])
    return torch.tensor(rows), torch.tensor(labels)


def blocks(folder):
    while True:
        for path in sorted(folder.glob("*.log")):
            lines = path.read_text().splitlines()
            for start in range(0, len(lines) - LINES + 1, LINES):
                yield lines[start:start + LINES]


def parsed(pool, source, ahead):
    waiting = collections.deque()
    for lines in source:
        waiting.append(pool.submit(parse_block, lines))
        if len(waiting) >= ahead:
            yield waiting.popleft().result()


def main():
    args = options()
    torch.set_num_threads(1)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="logs"))
    threads = 6 if args.fix else 2
    pool = concurrent.futures.ThreadPoolExecutor(threads, thread_name_prefix="parser")
    try:
        write_logs(folder)
        net = torch.nn.Sequential(torch.nn.Linear(BUCKETS, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))
        optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
        pace = Pace(args.seconds)
        for rows, labels in parsed(pool, blocks(folder), ahead=8):
            loss = torch.nn.functional.binary_cross_entropy_with_logits(net(rows).squeeze(1), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if pace.done():
                break
        pace.show()
    finally:
        pool.shutdown(cancel_futures=True)
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
