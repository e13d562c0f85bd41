"""asyncio in one thread: at most two requests at once to a store that takes 20 ms; the fix is sixteen at once."""
import asyncio
import time

import harness


async def main(args):
    queue = asyncio.Queue(32)

    async def fetch():
        while True:
            await asyncio.sleep(0.02)
            await queue.put(bytes(1000))

    tasks = [asyncio.create_task(fetch()) for _ in range(16 if args.fix else 2)]
    begin, count, waited = time.monotonic(), 0, 0.0
    while time.monotonic() - begin < args.seconds:
        asked = time.monotonic()
        await queue.get()
        waited += time.monotonic() - asked
        harness.burn(0.001)
        count += 1
    took = time.monotonic() - begin
    print("rate %.3f batches/s, waited %.1f %%" % (count / took, 100 * waited / took), flush=True)
    for task in tasks:
        task.cancel()


if __name__ == "__main__":
    asyncio.run(main(harness.options()))
