"""Log lines parsed by a pool of threads."""
import collections
import concurrent.futures
import re

import numpy as np
import torch

from pace import Pace, options

LINE = '10.0.%d.%d - - [12/Mar/2024:10:%02d:%02d +0000] "GET /item/%d?ref=%d HTTP/1.1" %d %d'
PATTERN = re.compile(r'(\d+)\.(\d+)\.(\d+)\.(\d+) .*:(\d+):(\d+) \+0000\] "(\w+) /item/(\d+)\?ref=(\d+) HTTP/1\.1" (\d+) (\d+)')


def parse(batch):
    rows = []
    for k in range(400):
        n = batch * 400 + k
        found = PATTERN.match(LINE % (n % 256, k % 256, n % 60, k % 60, n, n % 7, 200 + n % 3, n % 5000))
        rows.append([float(found[i]) for i in (3, 4, 5, 6, 8, 9, 10, 11)])
    return np.array(rows, np.float32)


class Parser:
    def __init__(self, executor, ahead=6):
        self.executor, self.ahead = executor, ahead

    def __iter__(self):
        pending, n = collections.deque(), 0
        while True:
            while len(pending) < self.ahead:
                pending.append(self.executor.submit(parse, n))
                n += 1
            yield pending.popleft().result()


if __name__ == "__main__":
    args = options()
    torch.set_num_threads(1)
    kind = concurrent.futures.ProcessPoolExecutor if args.fix else concurrent.futures.ThreadPoolExecutor
    net = torch.nn.Linear(8, 16)
    pace = Pace(args.seconds)
    with kind(max_workers=2) as executor:
        for rows in Parser(executor):
            net(torch.from_numpy(rows)).relu().mean().backward()
            net.zero_grad()
            if pace.tick():
                break
        executor.shutdown(wait=True, cancel_futures=True)
    pace.show()
