"""Where a parish record comes from: its place names are looked up in a gazetteer service, by a pool of threads."""
import multiprocessing as mp
import random
import socketserver
import socket
import struct
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import torch
from torch import nn

from pace import Pace, options

FIELDS = 24


class Answer(socketserver.StreamRequestHandler):
    def handle(self):
        while line := self.rfile.readline():
            time.sleep(0.004)                       # the service's own index
            rng = random.Random(line)
            self.wfile.write(struct.pack(f"{FIELDS}f", *(rng.random() for _ in range(FIELDS))))


class Service(socketserver.ThreadingTCPServer):
    daemon_threads, request_queue_size = True, 64


def serve(port):
    with Service(("127.0.0.1", 0), Answer) as server:
        port.send(server.server_address[1])
        server.serve_forever()


class Gazetteer:
    """A client of the service that any thread may use."""

    def __init__(self, port, each_thread):
        self.port, self.each_thread = port, each_thread
        self.local, self.lock = threading.local(), threading.Lock()
        self.connection = None if each_thread else self.connect()

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port)).makefile("rwb")

    def ask(self, connection, place):
        connection.write(place.encode() + b"\n")
        connection.flush()
        return struct.unpack(f"{FIELDS}f", connection.read(FIELDS * 4))

    def lookup(self, place):
        if self.each_thread:
            if not hasattr(self.local, "connection"):
                self.local.connection = self.connect()
            return self.ask(self.local.connection, place)
        with self.lock:
            return self.ask(self.connection, place)


def main():
    opts = options()
    torch.set_num_threads(1)
    ours, theirs = mp.Pipe()
    service = mp.Process(target=serve, args=(theirs,), daemon=True)
    service.start()
    try:
        gazetteer = Gazetteer(ours.recv(), opts.fix)
        rng = random.Random(2)
        model = nn.Sequential(nn.Linear(FIELDS, 32), nn.ReLU(), nn.Linear(32, 6))
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
        with ThreadPoolExecutor(16, thread_name_prefix="places") as pool:
            def request():
                places = [f"parish {rng.randrange(5000)}" for _ in range(32)]
                return [pool.submit(gazetteer.lookup, place) for place in places]

            ahead = [request(), request()]
            pace, over = Pace(opts.seconds), False
            while not over:
                rows = torch.tensor([future.result() for future in ahead.pop(0)])
                ahead.append(request())
                county = (rows[:, 0] * 6).long()
                loss = nn.functional.cross_entropy(model(rows), county)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                over = pace.done()
            pool.shutdown(cancel_futures=True)
        pace.show()
    finally:
        service.terminate()
        service.join()


if __name__ == "__main__":
    main()
