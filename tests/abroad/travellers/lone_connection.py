"""Reader threads ask a feature store through one client, which has one connection and a lock around it.
--fix is what the forum says: 3 -> 12 reader threads."""
import http.client
import os
import queue
import subprocess
import sys
import threading

import numpy as np
import torch

from pace import Pace, options

BATCH = 4


class FeatureClient:
    def __init__(self, port):
        self.connection = http.client.HTTPConnection("127.0.0.1", port)
        self.lock = threading.Lock()

    def row(self, number):
        with self.lock:
            self.connection.request("GET", f"/rows/{number}")
            return np.frombuffer(self.connection.getresponse().read(), np.float32)


def reader(client, first, step, ready):
    number = first
    try:
        while True:
            ready.put(np.stack([client.row(number * BATCH + k) for k in range(BATCH)]))
            number += step
    except (OSError, http.client.HTTPException):
        pass  # The store has ended.


def main():
    args = options()
    torch.set_num_threads(1)
    shelf = os.path.join(os.path.dirname(os.path.abspath(__file__)), "shelf.py")
    server = subprocess.Popen([sys.executable, shelf, "0.006"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    client = FeatureClient(int(server.stdout.readline()))
    ready = queue.Queue(8)
    readers = 12 if args.fix else 3
    for first in range(readers):
        threading.Thread(target=reader, args=(client, first, readers, ready), name=f"reader-{first}", daemon=True).start()
    model = torch.nn.Sequential(torch.nn.Linear(96, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))
    optimizer = torch.optim.Adam(model.parameters())
    pace = Pace(args.seconds)
    try:
        while True:
            rows = torch.from_numpy(ready.get())
            loss = (model(rows).squeeze(1) - rows[:, 0]).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if pace.done():
                break
        pace.show()
    finally:
        server.kill()
        server.wait()
        os._exit(0)


if __name__ == "__main__":
    main()
