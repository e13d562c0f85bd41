"""A key-value store that speaks RESP: GET and PING. Each answer takes a while, on its own."""
import asyncio
import os
import sys
import threading

DELAY = float(sys.argv[1])


async def serve(reader, writer):
    try:
        while True:
            count = int((await reader.readline())[1:])
            words = []
            for _ in range(count):
                size = int((await reader.readline())[1:])
                words.append((await reader.readexactly(size + 2))[:-2])
            if words[0].upper() == b"GET":
                await asyncio.sleep(DELAY)
                value = (words[1] * 200)[:1024]
                writer.write(b"$%d\r\n%s\r\n" % (len(value), value))
            else:
                writer.write(b"+PONG\r\n")
            await writer.drain()
    except (ValueError, asyncio.IncompleteReadError, ConnectionError):
        writer.close()


async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
    await server.serve_forever()


asyncio.run(main())
