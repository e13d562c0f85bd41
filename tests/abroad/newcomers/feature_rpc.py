"""Looks features up by gRPC from a pool of threads, and ranks. --fix: max_workers 8 instead of 2."""
import os
import struct
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

os.environ.pop("http_proxy", None)
import grpc
import numpy as np
import torch

from pace import Pace, options

CONFIG = {"model": {"width": 96}, "data": {"batch_size": 6, "max_workers": 2, "lookahead": 5}, "optim": {"lr": 1e-2}}


class FeatureClient:
    def __init__(self, port):
        self.channel = grpc.insecure_channel(f"127.0.0.1:{port}", options=[("grpc.enable_http_proxy", 0)])
        self.call = self.channel.unary_unary("/Features/Lookup")

    def lookup(self, number):
        return np.frombuffer(self.call(struct.pack("<q", number)), np.float32)


def batches(client, cfg):
    """Keeps lookups for some batches under way."""
    with ThreadPoolExecutor(cfg["max_workers"]) as pool:
        size, waiting, number = cfg["batch_size"], [], 0
        while True:
            while len(waiting) < cfg["lookahead"]:
                waiting.append([pool.submit(client.lookup, number + k) for k in range(size)])
                number += size
            yield torch.from_numpy(np.stack([f.result() for f in waiting.pop(0)]))


def main(cfg, args):
    here = os.path.dirname(os.path.abspath(__file__))
    server = subprocess.Popen([sys.executable, os.path.join(here, "feature_rpc_server.py")], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    client = FeatureClient(int(server.stdout.readline()))
    torch.set_num_threads(1)
    ranker = torch.nn.Sequential(torch.nn.Linear(48, cfg["model"]["width"]), torch.nn.ReLU(), torch.nn.Linear(cfg["model"]["width"], 1))
    optimizer = torch.optim.SGD(ranker.parameters(), lr=cfg["optim"]["lr"])
    pace = Pace(args.seconds)
    for features in batches(client, cfg["data"]):
        score = ranker(features).squeeze(-1)
        loss = torch.nn.functional.softplus(score[1:] - score[:-1]).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if pace.over():
            break
    pace.report()
    server.kill()
    os._exit(0)


if __name__ == "__main__":
    args = options()
    if args.fix:
        CONFIG["data"]["max_workers"] = 8
    main(CONFIG, args)
