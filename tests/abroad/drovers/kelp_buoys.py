"""Kelp forest buoys: hourly traces come from the institute's REST service, a torchdata pipeline feeds a small CNN."""
import http.client
import json
import multiprocessing
import random
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import torch
import torchdata.nodes as tn
from torch import nn
from torch.utils.data import RandomSampler

from pace import Pace, options

BUOYS, HOURS = 4000, 168


class Archive(BaseHTTPRequestHandler):
    """Stands for the institute's service, which is some 20 ms away."""
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    trace = json.dumps([round(random.gauss(14, 2), 2) for _ in range(HOURS)])

    def do_GET(self):
        time.sleep(0.02)
        buoy = int(self.path.rsplit("/", 1)[1])
        body = f'{{"cover": {buoy % 7 / 7:.3f}, "sst": {self.trace}}}'.encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()

    def log_message(self, *_):
        pass


def serve(port):
    server = ThreadingHTTPServer(("127.0.0.1", 0), Archive)
    port.send(server.server_address[1])
    server.serve_forever()


class BuoyClient:
    def __init__(self, port):
        self.port, self.local = port, threading.local()

    def __call__(self, buoy):
        if not hasattr(self.local, "link"):
            self.local.link = http.client.HTTPConnection("127.0.0.1", self.port)
        self.local.link.request("GET", f"/buoys/{buoy}")
        record = json.loads(self.local.link.getresponse().read())
        return torch.tensor(record["sst"]), record["cover"]


def stack(records):
    traces, covers = zip(*records)
    return (torch.stack(traces).unsqueeze(1) - 14) / 2, torch.tensor(covers)


def main():
    args = options()
    here, there = multiprocessing.Pipe()
    service = multiprocessing.get_context("fork").Process(target=serve, args=(there,), daemon=True)
    service.start()
    torch.set_num_threads(1)
    try:
        node = tn.SamplerWrapper(RandomSampler(range(BUOYS)))
        node = tn.ParallelMapper(node, map_fn=BuoyClient(here.recv()), num_workers=8 if args.fix else 1,
                                 method="thread", in_order=False)
        node = tn.Batcher(node, batch_size=16, drop_last=True)
        node = tn.Mapper(node, stack)
        loader = tn.Loader(tn.Prefetcher(node, prefetch_factor=4))
        net = nn.Sequential(nn.Conv1d(1, 8, 7, stride=3), nn.ReLU(), nn.Conv1d(8, 16, 5, stride=2), nn.ReLU(),
                            nn.AdaptiveAvgPool1d(4), nn.Flatten(), nn.Linear(64, 1))
        optimizer = torch.optim.Adam(net.parameters(), 1e-3)
        pace, over = Pace(args.seconds), False
        while not over:
            for traces, covers in loader:
                loss = nn.functional.mse_loss(net(traces).squeeze(1), covers)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                over = pace.done()
                if over:
                    break
        pace.show()
    finally:
        service.terminate()
        service.join()


if __name__ == "__main__":
    main()
