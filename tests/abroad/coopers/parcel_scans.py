"""Learns delivery times of parcels. Each parcel's scan history comes from the depot's tracking service over HTTP,
one request a parcel; here a stand-in for the service runs as a child process on localhost.
"""
import http.client
import json
import multiprocessing
import os
import random
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

from pace import Pace, options

PARCELS, STOPS = 5000, 24


class Tracking(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self):
        number = int(self.path.rsplit("/", 1)[1])
        time.sleep(0.025)  # the depot's own database
        rng = random.Random(number)
        scans = [round(rng.random(), 4) for _ in range(STOPS)]
        body = json.dumps({"scans": scans, "hours": round(sum(scans), 3)}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


def tracking_service(pipe):
    server = ThreadingHTTPServer(("127.0.0.1", 0), Tracking)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    pipe.send(server.server_port)
    parent = os.getppid()
    while os.getppid() == parent:
        time.sleep(0.5)


class Parcels(Dataset):
    def __init__(self, port):
        self.port, self.connection = port, None

    def __len__(self):
        return PARCELS

    def __getitem__(self, i):
        if self.connection is None:
            self.connection = http.client.HTTPConnection("127.0.0.1", self.port)
        self.connection.request("GET", f"/parcels/{i}")
        history = json.loads(self.connection.getresponse().read())
        return torch.tensor(history["scans"]), torch.tensor(history["hours"])


def main():
    args = options()
    here, there = multiprocessing.Pipe()
    service = multiprocessing.Process(target=tracking_service, args=(there,), daemon=True, name="tracking")
    service.start()
    loader = DataLoader(Parcels(here.recv()), batch_size=8, shuffle=True, num_workers=8 if args.fix else 2,
                        persistent_workers=True)
    model = nn.Sequential(nn.Linear(STOPS, 64), nn.GELU(), nn.Linear(64, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    pace, over = Pace(args.seconds), False
    try:
        while not over:
            for scans, hours in loader:
                loss = nn.functional.smooth_l1_loss(model(scans).squeeze(1), hours)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                over = pace.done()
                if over:
                    break
        pace.show()
    finally:
        del loader
        service.terminate()
        service.join()


if __name__ == "__main__":
    main()
