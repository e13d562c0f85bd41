"""Images come from an object store over a link of 20 MB/s, eight at a time by a thread pool in each of two workers.
--fix stores them as bytes instead of float32."""
import http.client
import multiprocessing.pool
import pathlib
import subprocess
import sys
import threading

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

from meter import Meter, arguments


class Store(Dataset):
    def __init__(self, port, small):
        self.port, self.small, self.pool = port, small, None
        self.mine = threading.local()

    def __len__(self):
        return 1 << 20

    def __getstate__(self):
        return {"port": self.port, "small": self.small}

    def fetch(self, index):
        if not hasattr(self.mine, "link"):
            self.mine.link = http.client.HTTPConnection("127.0.0.1", self.port)
        size = 3 * 96 * 96 * (1 if self.small else 4)
        self.mine.link.request("GET", "/images/%d/%d" % (index, size))
        data = self.mine.link.getresponse().read()
        kind = np.uint8 if self.small else np.float32
        return torch.from_numpy(np.nan_to_num(np.frombuffer(data, kind).astype(np.float32)).reshape(3, 96, 96))

    def __getitem__(self, index):
        return self.fetch(index)

    def __getitems__(self, indices):
        if self.pool is None:
            self.pool = multiprocessing.pool.ThreadPool(8)
        return self.pool.map(self.fetch, indices, chunksize=1)


def main():
    args = arguments()
    torch.set_num_threads(1)
    server = subprocess.Popen([sys.executable, str(pathlib.Path(__file__).with_name("object_server.py")), "0.002", "20e6"],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    port = int(server.stdout.readline())
    net = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 5, stride=5), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(4 * 19 * 19, 2))
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-4)
    meter = Meter(args.seconds)
    for images in DataLoader(Store(port, args.fix), batch_size=16, shuffle=True, num_workers=2):
        optimizer.zero_grad()
        net(images.clamp(0, 255)).square().mean().backward()
        optimizer.step()
        if meter.tick():
            break
    meter.show()
    server.kill()
    server.wait()


if __name__ == "__main__":
    main()
