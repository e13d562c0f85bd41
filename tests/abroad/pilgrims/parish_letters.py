"""Who wrote it: old letters to bags of word pieces, a batch per job of a small executor."""
import collections
import json
import random
import re
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import torch
from torch import nn

from pace import Pace, options

SIZE, HANDS = 20_000, 15
ENDINGS = ("ings", "ing", "ed", "es", "ly", "s")


def scribble(n):
    rng = random.Random(8)
    syllables = ["ka", "lo", "mer", "tin", "sha", "ort", "el", "vin", "dra", "pu"]
    words = ["".join(rng.choices(syllables, k=rng.randint(1, 4))) + rng.choice(("",) + ENDINGS) for _ in range(4000)]
    return [json.dumps({"hand": rng.randrange(HANDS), "text": " ".join(rng.choices(words, k=180)) + "."})
            for _ in range(n)]


def pieces(word):
    for end in ENDINGS:
        if word.endswith(end) and len(word) > len(end) + 2:
            yield word[:-len(end)]
            yield "##" + end
            return
    yield word


def prepare(lines):
    bags, hands = [], []
    for line in lines:
        letter = json.loads(line)
        seen = collections.Counter()
        for word in re.findall(r"[a-z]+", letter["text"].lower()):
            for piece in pieces(word):
                number = 0
                for char in piece:
                    number = (number * 31 + ord(char)) % SIZE
                seen[number] += 1
        bags.append(sorted(seen))
        hands.append(letter["hand"])
    return bags, hands


def batches(lines, pool, ahead=8, size=16):
    waiting = collections.deque()
    while True:
        while len(waiting) < ahead:
            waiting.append(pool.submit(prepare, random.sample(lines, size)))
        yield waiting.popleft().result()


def main():
    args = options()
    torch.set_num_threads(1)
    lines = scribble(2000)
    pool = ProcessPoolExecutor(2) if args.fix else ThreadPoolExecutor(4)
    net = nn.EmbeddingBag(SIZE, HANDS, sparse=True)
    sgd = torch.optim.SGD(net.parameters(), 0.1)
    pace = Pace(args.seconds)
    for bags, hands in batches(lines, pool):
        flat = torch.tensor([number for bag in bags for number in bag])
        starts = torch.tensor([0] + [len(bag) for bag in bags[:-1]]).cumsum(0)
        loss = nn.functional.cross_entropy(net(flat, starts), torch.tensor(hands))
        sgd.zero_grad()
        loss.backward()
        sgd.step()
        if pace.done():
            break
    pace.show()
    pool.shutdown(cancel_futures=True)


if __name__ == "__main__":
    main()
