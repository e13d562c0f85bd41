"""Herbarium sheets: leaf outlines from the museum's image gateway, through Ray Data, into a small classifier."""
import asyncio
import concurrent.futures
import multiprocessing
import os
import socket
import urllib.request

os.environ.setdefault("RAY_TRAIN_ENABLE_V2_MIGRATION_WARNINGS", "0")
import numpy as np
import ray
import torch
from torch import nn

from pace import Pace, options

POINTS, GENERA, SHEETS = 256, 12, 12_000


def gateway(listening):
    """The museum's gateway: looks a sheet up in its tape store and sends the outline."""
    async def answer(reader, writer):
        try:
            request = await reader.readuntil(b"\r\n\r\n")
            sheet = int(request.split(b" ")[1].rsplit(b"/", 1)[1])
            await asyncio.sleep(0.020)
            angles = np.linspace(0, 2 * np.pi, POINTS, dtype=np.float32)
            body = (1 + 0.3 * np.sin(angles * (2 + sheet % GENERA))).astype(np.float32).tobytes()
            writer.write(b"HTTP/1.0 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        writer.close()

    async def serve():
        server = await asyncio.start_server(answer, sock=listening)
        await server.serve_forever()

    asyncio.run(serve())


class SheetSource:
    """The outlines of a batch of sheets, `together` requests at a time."""

    def __init__(self, address, together):
        self.address, self.together = address, together

    def fetch_sheet(self, sheet):
        with urllib.request.urlopen(f"{self.address}/sheets/{sheet}", timeout=10) as reply:
            outline = np.frombuffer(reply.read(), np.float32)
        return outline / outline.max()

    def __call__(self, batch):
        with concurrent.futures.ThreadPoolExecutor(self.together) as requests:
            outlines = list(requests.map(self.fetch_sheet, batch["item"]))
        return {"outline": np.stack(outlines), "genus": batch["item"] % GENERA}


def main():
    given = options()
    listening = socket.create_server(("127.0.0.1", 0), backlog=128)
    address = f"http://127.0.0.1:{listening.getsockname()[1]}"
    museum = multiprocessing.get_context("fork").Process(target=gateway, args=(listening,), daemon=True)
    museum.start()
    listening.close()
    ray.init(num_cpus=2, include_dashboard=False, logging_level="ERROR", log_to_driver=False)
    ray.data.DataContext.get_current().enable_progress_bars = False
    try:
        source = SheetSource(address, together=12 if given.fix else 1)

        def fetch_sheets(batch):
            return source(batch)

        sheets = ray.data.from_items(list(range(SHEETS)), override_num_blocks=SHEETS // 32)
        sheets = sheets.map_batches(fetch_sheets, batch_size=32)
        model = nn.Sequential(nn.Linear(POINTS, 128), nn.GELU(), nn.Linear(128, GENERA))
        optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
        pace = Pace(given.seconds)
        for batch in sheets.iter_torch_batches(batch_size=16, prefetch_batches=2):
            loss = nn.functional.cross_entropy(model(batch["outline"].float()), batch["genus"].long())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if pace.done():
                break
        print(f"loss {loss.item():.3f}")
        pace.show()
    finally:
        ray.shutdown()
        museum.terminate()
        museum.join()


if __name__ == "__main__":
    main()
