"""WebDataset takes its shards from `pipe:curl`, from a store behind a line of 4 MB/s for all connections together.
--fix is what the forum says: more loader workers."""
import os
import subprocess
import sys
import warnings

import torch
import webdataset as wds

from pace import Pace, options

warnings.filterwarnings("ignore")


def scaled(sample):
    picture, label = sample
    return torch.from_numpy(picture).float() / 255, label


def main():
    args = options()
    torch.set_num_threads(1)
    server = subprocess.Popen([sys.executable, os.path.join(os.path.dirname(os.path.abspath(__file__)), "shard_server.py"), "4e6"],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    port = int(server.stdout.readline())
    urls = [f"pipe:curl -s http://127.0.0.1:{port}/shard-{number:03d}.tar" for number in range(240)]
    dataset = wds.WebDataset(urls, shardshuffle=False, nodesplitter=None, empty_check=False).decode().to_tuple("npy", "cls").map(scaled)
    loader = wds.WebLoader(dataset.batched(8), batch_size=None, num_workers=4 if args.fix else 1)
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 5, stride=4), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.LazyLinear(10))
    pace = Pace(args.seconds)
    try:
        for pictures, labels in loader:
            loss = torch.nn.functional.cross_entropy(model(pictures), torch.as_tensor(labels))
            loss.backward()
            model.zero_grad()
            if pace.done():
                break
        pace.show()
    finally:
        server.kill()


if __name__ == "__main__":
    main()
