"""A gateway of user features over HTTP/1.1 with keep-alive; a new connection waits 40 ms before it is served. Ends with its starter."""
import asyncio
import sys
import threading

BODY = bytes(range(256)) * 4
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nContent-Length: %d\r\n\r\n" % len(BODY) + b"\0\0\x80?" * (len(BODY) // 4)


async def serve(reader, writer):
    await asyncio.sleep(0.04)
    try:
        while True:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(ANSWER)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0, backlog=256)
    print(server.sockets[0].getsockname()[1], flush=True)
    loop, over = asyncio.get_running_loop(), asyncio.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), loop.call_soon_threadsafe(over.set)), daemon=True).start()
    await over.wait()


asyncio.run(main())
