"""A store that is often busy; asked again after a growing pause."""
import io
import random
import time
import urllib.error
import urllib.request

import torch
from torch.utils.data import DataLoader, Dataset

import stores
from pace import Pace, options


def with_retries(function, tries=6, pause=0.05):
    for attempt in range(tries):
        try:
            return function()
        except urllib.error.HTTPError as error:
            if error.code != 503 or attempt == tries - 1:
                raise
            time.sleep(pause * 2 ** attempt * random.uniform(0.9, 1.1))


class Documents(Dataset):
    def __init__(self, base):
        self.base = base

    def __len__(self):
        return 50_000

    def __getitem__(self, i):
        raw = with_retries(lambda: urllib.request.urlopen(f"{self.base}/doc/{i}").read())
        return torch.frombuffer(bytearray(raw), dtype=torch.uint8)


class Bag(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.bag, self.out = torch.nn.EmbeddingBag(256, 32), torch.nn.Linear(32, 2)

    def forward(self, x):
        return self.out(self.bag(x))


if __name__ == "__main__":
    args = options()
    torch.set_num_threads(1)
    url = "http://127.0.0.1:%d" % stores.start("http_store.py", "--failing", 0.4, "--size", 512, "--latency", 0.002)
    model, pace = Bag(), Pace(args.seconds)
    optimiser = torch.optim.SGD(model.parameters(), 0.1)
    for docs in DataLoader(Documents(url), batch_size=6, num_workers=8 if args.fix else 2):
        optimiser.zero_grad()
        model(docs.int()).logsumexp(1).mean().backward()
        optimiser.step()
        if pace.tick():
            break
    pace.show()
