"""Map tiles from an HTTP store that is a while away."""
import http.client

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

import stores
from pace import Pace, options


class Tiles(Dataset):
    def __init__(self, port, side=32):
        self.port, self.side, self.client = port, side, None

    def __len__(self):
        return 100_000

    def __getitem__(self, index):
        if self.client is None:
            self.client = http.client.HTTPConnection("127.0.0.1", self.port)
        self.client.request("GET", f"/tiles/{index // 256}/{index % 256}.raw")
        raw = self.client.getresponse().read()
        return torch.from_numpy(np.frombuffer(raw, np.uint8).reshape(3, self.side, self.side).astype(np.float32) / 255)


if __name__ == "__main__":
    args = options()
    torch.set_num_threads(1)
    port = stores.start("http_store.py", "--latency", 0.025, "--size", 3 * 32 * 32)
    loader = DataLoader(Tiles(port), batch_size=8, num_workers=8 if args.fix else 2)
    encoder = torch.nn.Conv2d(3, 16, 4, stride=4)
    optimiser = torch.optim.SGD(encoder.parameters(), 1e-3)
    pace = Pace(args.seconds)
    for tiles in loader:
        optimiser.zero_grad()
        encoder(tiles).square().mean().backward()
        optimiser.step()
        if pace.tick():
            break
    pace.show()
