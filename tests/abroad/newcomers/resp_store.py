"""The store of session_vectors: speaks a piece of the redis protocol (GET), each answer 12 ms late."""
import asyncio
import struct
import sys


async def serve(reader, writer):
    try:
        while True:
            head = await reader.readline()
            if not head:
                return
            words = []
            for _ in range(int(head[1:])):
                size = int((await reader.readline())[1:])
                words.append((await reader.readexactly(size + 2))[:-2])
            await asyncio.sleep(0.012)
            number = int(words[1].rsplit(b":", 1)[1])
            value = struct.pack("<64f", *[(number * (k + 1)) % 97 / 97 for k in range(64)])
            writer.write(b"$%d\r\n%s\r\n" % (len(value), value))
            await writer.drain()
    except (ConnectionError, asyncio.IncompleteReadError):
        pass


async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    import os
    os._exit(0)


asyncio.run(main())
