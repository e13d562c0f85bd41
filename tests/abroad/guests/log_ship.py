"""Four reader threads read audio clips and log each one; a handler of logging ships the records to a collector and waits for its receipt.
--fix: QueueHandler and QueueListener between them."""
import io
import logging
import logging.handlers
import queue
import socket
import socketserver
import threading
import time
import wave

import numpy as np
import torch

from pace import Pace, options

log = logging.getLogger("clips")


class Collector(socketserver.StreamRequestHandler):
    def handle(self):
        for _ in self.rfile:
            time.sleep(0.004)
            self.wfile.write(b"+")


class Shipper(logging.Handler):
    def __init__(self, address):
        super().__init__()
        self.line = socket.create_connection(address)

    def emit(self, record):
        self.line.sendall((self.format(record) + "\n").encode())
        self.line.recv(1)


class Drop(logging.handlers.QueueHandler):
    """Rather loses records than waits."""

    def enqueue(self, record):
        try:
            self.queue.put_nowait(record)
        except queue.Full:
            pass


def clip(number):
    out = io.BytesIO()
    with wave.open(out, "wb") as sound:
        sound.setparams((1, 2, 8000, 0, "NONE", None))
        sound.writeframes(np.random.default_rng(number).integers(-9000, 9000, 4000, dtype=np.int16).tobytes())
    return out.getvalue()


def read(stock, first, ready):
    number = first
    while True:
        with wave.open(io.BytesIO(stock[number % len(stock)])) as sound:
            samples = np.frombuffer(sound.readframes(sound.getnframes()), np.int16)
        log.debug("clip %d, %d samples", number, len(samples))
        ready.put(samples.astype(np.float32) / 32768)
        number += 4


def main():
    args = options()
    torch.set_num_threads(1)
    socketserver.ThreadingTCPServer.daemon_threads = True
    collector = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Collector)
    threading.Thread(target=collector.serve_forever, name="collector", daemon=True).start()
    handler = Shipper(collector.server_address)
    if args.fix:
        records = queue.Queue(1000)
        logging.handlers.QueueListener(records, handler).start()
        handler = Drop(records)
    log.addHandler(handler)
    log.setLevel(logging.DEBUG)
    stock, ready = [clip(number) for number in range(64)], queue.Queue(32)
    for first in range(4):
        threading.Thread(target=read, args=(stock, first, ready), name=f"reader-{first}", daemon=True).start()
    model = torch.nn.Sequential(torch.nn.Conv1d(1, 4, 80, stride=40), torch.nn.ReLU(), torch.nn.AdaptiveMaxPool1d(1), torch.nn.Flatten(), torch.nn.Linear(4, 1))
    pace = Pace(args.seconds)
    while True:
        clips = torch.from_numpy(np.stack([ready.get() for _ in range(8)])).unsqueeze(1)
        model(clips).square().mean().backward()
        model.zero_grad()
        if pace.done():
            break
    pace.show()


if __name__ == "__main__":
    main()
