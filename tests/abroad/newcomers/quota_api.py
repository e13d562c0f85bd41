"""Records from a service that allows 60 requests a second; the client waits as told and asks again. --fix asks for eight in one request."""
import http.client
import json
import os
import subprocess
import sys
import time

import torch
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

from pace import Pace, options


class ApiClient:
    def __init__(self, port):
        self.connection = http.client.HTTPConnection("127.0.0.1", port)

    def records(self, ids):
        while True:
            self.connection.request("GET", "/records?ids=" + ",".join(map(str, ids)))
            response = self.connection.getresponse()
            body = response.read()
            if response.status == 200:
                return json.loads(body)
            time.sleep(float(response.headers.get("Retry-After", 0.1)))


class Records(IterableDataset):
    def __init__(self, port, at_once):
        self.port, self.at_once = port, at_once

    def __iter__(self):
        info = get_worker_info()
        client = ApiClient(self.port)
        first, jump = info.id * self.at_once, info.num_workers * self.at_once
        while True:
            for record in client.records(range(first, first + self.at_once)):
                yield torch.tensor(record["values"]), record["label"]
            first += jump


def run(args):
    folder = os.path.dirname(os.path.abspath(__file__))
    service = subprocess.Popen([sys.executable, folder + "/quota_server.py"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    port = int(service.stdout.readline())
    torch.set_num_threads(1)
    model = torch.nn.Linear(32, 2)
    optimizer = torch.optim.Adam(model.parameters())
    pace = Pace(args.seconds)
    for values, label in DataLoader(Records(port, 8 if args.fix else 1), batch_size=8, num_workers=3):
        loss = torch.nn.functional.cross_entropy(model(values), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if pace.over():
            break
    pace.report()
    service.stdin.close()
    service.wait()


if __name__ == "__main__":
    run(options())
