"""Eight threads of an executor ask an archive; the loop takes their futures in the order in which they were submitted, eight ahead.
--fix: takes whichever is done."""
import collections
import concurrent.futures
import os
import socket
import subprocess
import sys
import threading

import numpy as np
import torch

from pace import Pace, options

here = threading.local()


def fetch(port, key):
    if not hasattr(here, "stream"):
        here.stream = socket.create_connection(("127.0.0.1", port)).makefile("rwb")
    here.stream.write(b"%d\n" % key)
    here.stream.flush()
    return np.frombuffer(here.stream.read(2048), np.uint8)


def in_order(executor, port, ahead):
    window = collections.deque(executor.submit(fetch, port, key) for key in range(ahead))
    key = ahead
    while True:
        yield window.popleft().result()
        window.append(executor.submit(fetch, port, key))
        key += 1


def as_they_come(executor, port, ahead):
    window = {executor.submit(fetch, port, key) for key in range(ahead)}
    key = ahead
    while True:
        done, window = concurrent.futures.wait(window, return_when=concurrent.futures.FIRST_COMPLETED)
        for future in done:
            yield future.result()
            window.add(executor.submit(fetch, port, key))
            key += 1


def batched(objects, size):
    rows = []
    for row in objects:
        rows.append(row)
        if len(rows) == size:
            yield torch.from_numpy(np.stack(rows)).float() / 255
            rows = []


def main():
    args = options()
    torch.set_num_threads(1)
    server = subprocess.Popen([sys.executable, os.path.join(os.path.dirname(os.path.abspath(__file__)), "archive_server.py")],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    port = int(server.stdout.readline())
    executor = concurrent.futures.ThreadPoolExecutor(8, "fetch")
    model = torch.nn.Sequential(torch.nn.Linear(2048, 256), torch.nn.ReLU(), torch.nn.Linear(256, 2048))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    pace = Pace(args.seconds)
    for x in batched((as_they_come if args.fix else in_order)(executor, port, ahead=8), size=4):
        loss = (model(x) - x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if pace.done():
            break
    pace.show()
    server.kill()
    os._exit(0)


if __name__ == "__main__":
    main()
