"""An archive that has most objects at hand (6 ms) and fetches one in twelve from tape (250 ms). Ends with its starter."""
import asyncio
import sys
import threading


async def serve(reader, writer):
    while line := await reader.readline():
        key = int(line)
        await asyncio.sleep(0.25 if key % 12 == 5 else 0.006)
        writer.write(bytes((key * k) % 251 for k in range(256)) * 8)
        await writer.drain()
    writer.close()


async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    loop = asyncio.get_running_loop()
    over = loop.create_future()
    threading.Thread(target=lambda: (sys.stdin.read(), loop.call_soon_threadsafe(over.set_result, None)), daemon=True).start()
    await over


asyncio.run(main())
