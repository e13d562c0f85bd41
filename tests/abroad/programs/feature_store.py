"""The store of feature_server: one thread, a simple protocol on TCP. "TOP user\n" gets the user's sixteen most frequent items and
their counts as 32 little-endian int32. With --kept the answers are computed when the store starts."""
import collections
import os
import random
import selectors
import socket
import struct
import sys

USERS, EVENTS = 200, 12_000


def top(events):
    best = collections.Counter(events).most_common(16)
    return struct.pack("<32i", *[number for pair in best for number in pair])


def main():
    draw = random.Random(5)
    users = [[int(draw.paretovariate(0.3)) % 5000 for _ in range(EVENTS)] for _ in range(USERS)]
    kept = [top(events) for events in users] if "--kept" in sys.argv else None
    listener = socket.create_server(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)
    selector = selectors.DefaultSelector()
    selector.register(listener, selectors.EVENT_READ)
    selector.register(sys.stdin, selectors.EVENT_READ)
    buffers = {}
    while True:
        for key, _ in selector.select():
            if key.fileobj is listener:
                client, _ = listener.accept()
                client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                buffers[client] = b""
                selector.register(client, selectors.EVENT_READ)
                continue
            if key.fileobj is sys.stdin:        # ends with the one who started us
                os._exit(0)
            client = key.fileobj
            data = client.recv(4096)
            if not data:
                selector.unregister(client)
                client.close()
                del buffers[client]
                continue
            *lines, buffers[client] = (buffers[client] + data).split(b"\n")
            for line in lines:
                user = int(line.split()[1]) % USERS
                client.sendall(kept[user] if kept else top(users[user]))


if __name__ == "__main__":
    main()
