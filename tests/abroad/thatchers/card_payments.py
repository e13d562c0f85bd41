"""Scores card payments. What is known of a card holder comes from the bank's profile service over HTTP."""
import asyncio
import random
import subprocess
import sys

import aiohttp
from aiohttp import web

from pace import Pace, options

FIELDS, BATCH, HOLDERS = 24, 16, 5000


async def profile(request):
    """The service: its own store answers after some milliseconds."""
    holder = int(request.match_info["holder"])
    await asyncio.sleep(0.008)
    rng = random.Random(holder)
    return web.json_response({"holder": holder, "history": [round(rng.gauss(0, 1), 3) for _ in range(FIELDS)]})


async def serve():
    app = web.Application()
    app.router.add_get("/profile/{holder}", profile)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    print(site._server.sockets[0].getsockname()[1], flush=True)
    # The parent closes our standard input when it is done.
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    await runner.cleanup()


class Profiles:
    def __init__(self, session, port, together):
        self.session, self.together = session, together
        self.address = f"http://127.0.0.1:{port}/profile/"

    async def one(self, holder):
        async with self.session.get(self.address + str(holder)) as answer:
            return (await answer.json())["history"]

    async def many(self, holders):
        if self.together:
            return await asyncio.gather(*(self.one(holder) for holder in holders))
        return [await self.one(holder) for holder in holders]


async def learn(args, port):
    import torch  # here, as the service does without

    torch.set_num_threads(1)
    scorer = torch.nn.Sequential(torch.nn.Linear(FIELDS + 1, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
    optimizer = torch.optim.Adam(scorer.parameters(), lr=1e-3)
    rng, pace = random.Random(3), Pace(args.seconds)
    async with aiohttp.ClientSession() as session:
        profiles = Profiles(session, port, together=args.fix)
        while True:
            payments = [(rng.randrange(HOLDERS), rng.expovariate(1.0)) for _ in range(BATCH)]
            history = torch.tensor(await profiles.many([holder for holder, _ in payments]))
            amount = torch.tensor([[amount] for _, amount in payments])
            fraud = ((history[:, 0] + amount[:, 0]) > 2).float()
            scores = scorer(torch.cat([history, amount], dim=1)).squeeze(1)
            loss = torch.nn.functional.binary_cross_entropy_with_logits(scores, fraud)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if pace.done():
                break
    pace.show()


def main():
    args = options()
    command = [sys.executable, __file__, "serve"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as service:
        port = int(service.stdout.readline())
        try:
            asyncio.run(learn(args, port))
        finally:
            service.stdin.close()
            service.wait(10)


if __name__ == "__main__":
    if sys.argv[1:] == ["serve"]:
        asyncio.run(serve())
    else:
        main()
