"""Now and then the trainer looks at its validation set; meanwhile the workers could read ahead from a thin line."""
import time
import urllib.request

import torch
from torch.utils.data import DataLoader, Dataset

import stores
from pace import Pace, options


class Remote(Dataset):
    def __init__(self, url):
        self.url = url

    def __len__(self):
        return 1 << 20

    def __getitem__(self, n):
        raw = urllib.request.urlopen(f"{self.url}/{n}").read()
        return torch.frombuffer(bytearray(raw), dtype=torch.uint8)[::128] / 255


class Loop:
    def __init__(self, loader, every):
        self.loader, self.every = loader, every
        self.model = torch.nn.Sequential(torch.nn.Linear(128, 128), torch.nn.ReLU(), torch.nn.Linear(128, 128))
        self.optimiser = torch.optim.Adam(self.model.parameters())
        self.held = torch.rand(4096, 128)

    def validate(self, seconds=0.4):
        end, total = time.monotonic() + seconds, 0.0
        with torch.no_grad():
            while time.monotonic() < end:
                total += (self.model(self.held) - self.held).square().mean().item()
        return total

    def run(self, seconds):
        pace = Pace(seconds)
        for step, x in enumerate(self.loader, 1):
            self.optimiser.zero_grad()
            (self.model(x) - x).square().mean().backward()
            self.optimiser.step()
            if step % self.every == 0:
                self.validate()
            if pace.tick():
                break
        pace.show()


if __name__ == "__main__":
    args = options()
    torch.set_num_threads(1)
    url = "http://127.0.0.1:%d" % stores.start("http_store.py", "--size", 1 << 14, "--bandwidth", 1.2e6)
    loader = DataLoader(Remote(url), batch_size=2, num_workers=2, prefetch_factor=16 if args.fix else 2)
    Loop(loader, every=16).run(args.seconds)
