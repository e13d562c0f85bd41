"""An asyncio reader on a thread of its own; a semaphore bounds the requests under way."""
import asyncio
import queue
import threading

import numpy as np
import torch

import stores
from pace import Pace, options


async def get(port, number):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        key = b"shard:%d" % number
        writer.write(b"*2\r\n$3\r\nGET\r\n$%d\r\n%s\r\n" % (len(key), key))
        size = int((await reader.readline())[1:])
        return await reader.readexactly(size)
    finally:
        writer.close()


class AsyncReader:
    def __init__(self, port, limit, batch, depth=6):
        self.port, self.limit, self.batch = port, limit, batch
        self.out, self.depth = queue.Queue(), depth
        self.thread = threading.Thread(target=lambda: asyncio.run(self.main()), daemon=True)
        self.thread.start()

    async def main(self):
        self.loop, self.room = asyncio.get_running_loop(), asyncio.Semaphore(self.depth)
        allowed = asyncio.Semaphore(self.limit)

        async def one(n):
            async with allowed:
                return await get(self.port, n)

        n = 0
        while True:
            await self.room.acquire()
            parts = await asyncio.gather(*(one(n + k) for k in range(self.batch)))
            n += self.batch
            self.out.put(np.stack([np.frombuffer(p, np.uint8) for p in parts]))

    def __next__(self):
        rows = self.out.get()
        self.loop.call_soon_threadsafe(self.room.release)
        return torch.from_numpy(rows)

    def __iter__(self):
        return self


if __name__ == "__main__":
    args = options()
    reader = AsyncReader(stores.start("resp_store.py", 0.02), limit=16 if args.fix else 4, batch=16)
    model = torch.nn.Linear(1024, 32)
    pace = Pace(args.seconds)
    for rows in reader:
        model(rows.float()).relu().sum().backward()
        model.zero_grad()
        if pace.tick():
            break
    pace.show()
