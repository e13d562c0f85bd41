"""A loader worker asks an embedding store for the rows of each batch, by a small protocol of its own: the request's head, then the ids.
--fix: TCP_NODELAY. Without it the ids wait until the head is acknowledged, and the store's kernel takes its time for that."""
import multiprocessing
import socket
import struct
import threading

import numpy as np
import torch

from pace import Pace, options

ROWS, WIDTH = 32, 64
HEAD = struct.Struct("<4sI")


def receive(connection, size):
    parts = bytearray()
    while len(parts) < size:
        part = connection.recv(size - len(parts))
        if not part:
            raise EOFError
        parts += part
    return parts


def answer(connection, table):
    try:
        while True:
            _, count = HEAD.unpack(receive(connection, HEAD.size))
            ids = np.frombuffer(receive(connection, count * 4), dtype=np.uint32)
            connection.sendall(table[ids % len(table)].tobytes())
    except (EOFError, OSError):
        connection.close()


def store(listener):
    table = np.random.default_rng(0).random((4096, WIDTH), dtype=np.float32)
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=answer, args=(connection, table), daemon=True).start()


class Rows(torch.utils.data.IterableDataset):
    def __init__(self, port, at_once):
        self.port, self.at_once = port, at_once

    def __iter__(self):
        draw = np.random.default_rng(1)
        with socket.create_connection(("127.0.0.1", self.port)) as connection:
            if self.at_once:
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            while True:
                ids = draw.integers(1 << 30, size=ROWS, dtype=np.uint32)
                connection.sendall(HEAD.pack(b"ROWS", ROWS))
                connection.sendall(ids.tobytes())
                rows = np.frombuffer(receive(connection, ROWS * WIDTH * 4), dtype=np.float32)
                yield torch.from_numpy(rows.reshape(ROWS, WIDTH).copy()), torch.from_numpy((ids % 2).astype(np.float32))


def main():
    args = options()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    listener = socket.create_server(("127.0.0.1", 0))
    server = multiprocessing.Process(target=store, args=(listener,), daemon=True)
    server.start()
    loader = torch.utils.data.DataLoader(Rows(listener.getsockname()[1], args.fix), batch_size=None, num_workers=1)
    model = torch.nn.Sequential(torch.nn.Linear(WIDTH, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    try:
        pace = Pace(args.seconds)
        for rows, labels in loader:
            loss = torch.nn.functional.binary_cross_entropy_with_logits(model(rows)[:, 0], labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if pace.done():
                break
        pace.show()
    finally:
        server.terminate()
        server.join()


if __name__ == "__main__":
    main()
