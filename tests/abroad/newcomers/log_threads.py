"""Two threads parse web logs in pure Python into a queue. --fix: two processes, for the interpreter lock lets just one thread run."""
import multiprocessing
import os
import queue
import random
import threading

import numpy as np
import torch

from pace import Pace, options

FIELDS = ("method", "status", "size", "agent", "hour")


def make_lines(count, seed=0):
    rng = random.Random(seed)
    return [f'{rng.randrange(256)}.{rng.randrange(256)}.0.1 - - [03/Feb/2024:{rng.randrange(24):02d}:11:02 +0000] "{rng.choice(["GET", "POST", "PUT"])} '
            f'/page/{rng.randrange(9999)}?q={rng.randrange(99)} HTTP/1.1" {rng.choice([200, 301, 404, 500])} {rng.randrange(90000)} "agent/{rng.randrange(8)}.0"'
            for _ in range(count)]


def parse_line(line):
    values, quoted, word, words = [], False, "", []
    for character in line:
        if character == '"':
            quoted = not quoted
        elif character == " " and not quoted:
            words.append(word)
            word = ""
        else:
            word += character
    words.append(word)
    address = sum(int(p) * 256 ** k for k, p in enumerate(words[0].split("."))) % 1009
    values = [address / 1009, int(words[3].split(":")[1]) / 24, len(words[5]) / 40, int(words[6]) / 500, int(words[7]) / 90000, len(words[8]) / 10]
    return values


def parse_forever(number, out):
    lines = make_lines(512, number)
    while True:
        chosen = random.sample(lines, 48)
        out.put(np.array([parse_line(l) for l in chosen], np.float32))


def main():
    args = options()
    if args.fix:
        context = multiprocessing.get_context("fork")
        out = context.Queue(8)
        parsers = [context.Process(target=parse_forever, args=(n, out), daemon=True) for n in range(2)]
    else:
        out = queue.Queue(8)
        parsers = [threading.Thread(target=parse_forever, args=(n, out), daemon=True, name=f"parser{n}") for n in range(2)]
    for parser in parsers:
        parser.start()
    torch.set_num_threads(1)
    net = torch.nn.Sequential(torch.nn.Linear(6, 32), torch.nn.ReLU(), torch.nn.Linear(32, 6))
    opt = torch.optim.Adam(net.parameters())
    pace = Pace(args.seconds)
    while True:
        x = torch.from_numpy(out.get())
        loss = (net(x) - x).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        if pace.over():
            break
    pace.report()
    for parser in parsers:
        if args.fix:
            parser.kill()
    os._exit(0)


if __name__ == "__main__":
    main()
