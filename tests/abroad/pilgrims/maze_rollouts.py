"""On-policy maze runner: a player process plays with the newest weights, the learner learns from what it brings back."""
import multiprocessing
import os
import shutil
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from torch import nn

from pace import Pace, options

VIEW, MOVES, STEPS = 25, 4, 128


def arrives(path, every):
    while not path.exists():
        time.sleep(every)


def put(path, **arrays):
    part = path.with_suffix(".part")
    with open(part, "wb") as file:
        np.savez(file, **arrays)
    os.rename(part, path)


def play(box, every):
    rng, turn = np.random.default_rng(), 0
    while True:
        news = box / f"weights-{turn}.npz"
        arrives(news, every)
        with np.load(news) as w:
            table, bias = w["w"], w["b"]
        news.unlink()
        view = rng.normal(size=(STEPS, VIEW)).astype(np.float32)
        moves = (view @ table.T + bias + rng.gumbel(size=(STEPS, MOVES))).argmax(1)
        put(box / f"rollout-{turn}.npz", view=view, moves=moves, gain=rng.normal(size=STEPS).astype(np.float32))
        turn += 1


def main():
    args = options()
    torch.set_num_threads(1)
    box = Path(tempfile.mkdtemp(prefix="maze"))
    every = 0.002 if args.fix else 0.05
    player = multiprocessing.get_context("fork").Process(target=play, args=(box, every), daemon=True)
    player.start()
    policy = nn.Linear(VIEW, MOVES)
    adam = torch.optim.Adam(policy.parameters(), 3e-4)
    pace, turn = Pace(args.seconds), 0
    while True:
        put(box / f"weights-{turn}.npz", w=policy.weight.detach().numpy(), b=policy.bias.detach().numpy())
        rollout = box / f"rollout-{turn}.npz"
        arrives(rollout, every)
        with np.load(rollout) as got:
            view, moves, gain = (torch.from_numpy(got[k]) for k in ("view", "moves", "gain"))
        rollout.unlink()
        chance = policy(view).log_softmax(1).gather(1, moves[:, None])[:, 0]
        loss = -(chance * gain).mean()
        adam.zero_grad()
        loss.backward()
        adam.step()
        turn += 1
        if pace.done():
            break
    pace.show()
    player.terminate()
    player.join()
    shutil.rmtree(box, ignore_errors=True)


if __name__ == "__main__":
    main()
