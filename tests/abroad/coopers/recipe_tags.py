"""Learns a recipe's tag (a logistic regression in numpy) while a pool fetches the recipes' pages from the site's
mirror, here a child process on localhost, and turns them into hashed word pairs.

--fix: a pool of processes in place of the pool of threads.
"""
import collections
import html
import http.server
import multiprocessing
import os
import random
import re
import shutil
import tempfile
import threading
import time
import urllib.request
import zlib
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import numpy as np

from pace import Pace, options

PAGES, BUCKETS, AHEAD = 60, 1 << 14, 6
WORDS = re.compile(r"[a-z]{2,}")
PANTRY = ("flour butter sugar egg milk onion garlic stir bake simmer chop fry boil season salt pepper basil thyme "
          "rice lentil tomato cheese oven minutes spoon bowl &amp; whisk fold roast").split()


def write_pages(folder):
    rng = random.Random(2)
    for page in range(PAGES):
        steps = [f"<p>{' '.join(rng.choice(PANTRY) + rng.choice('abcdef') for _ in range(30))}</p>" for _ in range(500)]
        with open(os.path.join(folder, f"{page}.html"), "w") as out:
            out.write("<html><body>" + "\n".join(steps) + "</body></html>")


class Mirror(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


def mirror(folder, pipe):
    os.chdir(folder)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Mirror)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    pipe.send(server.server_port)
    parent = os.getppid()
    while os.getppid() == parent:
        time.sleep(0.5)


def recipes(port, page):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/{page}.html") as answer:
        text = html.unescape(answer.read().decode()).lower()
    rows = []
    for step in text.split("<p>")[1:]:
        words = WORDS.findall(step)
        rows.append([zlib.crc32(f"{a} {b}".encode()) % BUCKETS for a, b in zip(words, words[1:])][:28])
    return np.array([row + [0] * (28 - len(row)) for row in rows], dtype=np.int32)


class TagModel:
    def __init__(self):
        self.weights, self.bias = np.zeros(BUCKETS), 0.0

    def update(self, rows, tags, rate=0.1):
        logits = self.weights[rows].sum(axis=1) + self.bias
        slope = 1 / (1 + np.exp(-logits)) - tags
        np.add.at(self.weights, rows.ravel(), -rate / len(rows) * np.repeat(slope, rows.shape[1]))
        self.bias -= rate * slope.mean()


def main():
    args = options()
    folder = tempfile.mkdtemp(prefix="recipes_")
    write_pages(folder)
    here, there = multiprocessing.Pipe()
    service = multiprocessing.Process(target=mirror, args=(folder, there), daemon=True, name="mirror")
    service.start()
    port, model, pace = here.recv(), TagModel(), Pace(args.seconds)
    try:
        with (ProcessPoolExecutor(3) if args.fix else ThreadPoolExecutor(3)) as pool:
            waiting, page, over = collections.deque(), 0, False
            while not over:
                while len(waiting) < AHEAD:
                    waiting.append(pool.submit(recipes, port, page % PAGES))
                    page += 1
                rows = waiting.popleft().result()
                model.update(rows, (rows[:, 0] % 2).astype(float))
                over = pace.done()
        pace.show()
    finally:
        service.terminate()
        service.join()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
