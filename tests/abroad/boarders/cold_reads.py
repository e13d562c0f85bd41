"""Trains on nanopore reads from an object store that has moved a few of them to a cheaper tier, from where they come back late.

--fix: DataLoader(in_order=False)."""
import http.client
import http.server
import multiprocessing
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

from pace import Pace, options

SAMPLES = 2000


class Store(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    reads = np.random.default_rng(8).normal(90, 12, (64, SAMPLES)).astype(np.float32)

    def do_GET(self):
        key = int(self.path.rsplit("/", 1)[1])
        time.sleep(0.4 if key % 48 == 29 else 0.001)
        body = self.reads[key % len(self.reads)].tobytes()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def serve(port):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Store)
    port.send(server.server_port)
    server.serve_forever()


class Reads(Dataset):
    def __init__(self, port, count=40000):
        self.port, self.count, self.connection = port, count, None

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        if self.connection is None:
            self.connection = http.client.HTTPConnection("127.0.0.1", self.port)
        self.connection.request("GET", f"/reads/{index}")
        signal = np.frombuffer(self.connection.getresponse().read(), np.float32)
        signal = (signal - np.median(signal)) / signal.std()
        return torch.from_numpy(signal[None]), torch.tensor(index % 4)


class Basecaller(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv1d(1, 16, 11, stride=5)
        self.body = nn.Conv1d(16, 32, 5, stride=4)
        self.head = nn.Linear(32, 4)

    def forward(self, signals):
        return self.head(torch.relu(self.body(torch.relu(self.stem(signals)))).mean(-1))


def main():
    args = options()
    torch.set_num_threads(1)
    receive, send = multiprocessing.Pipe(False)
    multiprocessing.Process(target=serve, args=(send,), daemon=True).start()
    loader = DataLoader(Reads(receive.recv()), batch_size=4, shuffle=True, num_workers=4, in_order=not args.fix)
    model = Basecaller()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    pace = Pace(args.seconds)
    for signals, bases in loader:
        loss = nn.functional.cross_entropy(model(signals), bases)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if pace.done():
            break
    pace.show()


if __name__ == "__main__":
    main()
