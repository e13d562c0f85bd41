"""Crosswords: how hard is a clue? Clues lie in a DuckDB file; each batch takes a random sample of them."""
import os
import queue
import random
import shutil
import tempfile
import threading

import duckdb
import numpy as np
import torch

from pace import Pace, options

CLUES, BATCH = 40_000, 96
COLUMNS = ["length", "words", "anagram", "vowels", "setter", "weekday", "crossing", "solved"]


def build_book(path):
    with duckdb.connect(path) as book:
        book.execute(f"""create table clues as select i as id, (random() * 15)::int as length, (random() * 9)::int as words,
            random() > 0.7 as anagram, random() as vowels, (random() * 40)::int as setter, i % 7 as weekday,
            random() as crossing, random() * 30 as solved from range({CLUES}) t(i)""")


class ClueBook:
    def __init__(self, path, together):
        self.book = duckdb.connect(path, read_only=True, config={"threads": 1})
        self.together = together

    def clue(self, number):
        return self.book.execute(f"select {', '.join(COLUMNS)} from clues where id = ?", [int(number)]).fetchone()

    def sample(self, numbers):
        if self.together:
            rows = self.book.execute(f"select {', '.join(COLUMNS)} from clues where id in ({', '.join(map(str, numbers))})").fetchall()
        else:
            rows = [self.clue(n) for n in numbers]
        return torch.from_numpy(np.array(rows, dtype=np.float32))


def draw(book, ready, stop):
    rng = random.Random(11)
    while not stop.is_set():
        clues = book.sample(rng.sample(range(CLUES), BATCH))
        while not stop.is_set():
            try:
                ready.put(clues, timeout=0.2)
                break
            except queue.Full:
                pass


def run(args, folder):
    path = os.path.join(folder, "clues.duckdb")
    build_book(path)
    ready, stop = queue.Queue(maxsize=16), threading.Event()
    drawer = threading.Thread(target=draw, args=(ClueBook(path, args.fix), ready, stop), name="drawer")
    drawer.start()
    model = torch.nn.Sequential(torch.nn.Linear(7, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-3)
    pace = Pace(args.seconds)
    while True:
        clues = ready.get()
        loss = torch.nn.functional.mse_loss(model(clues[:, :-1]).squeeze(1), clues[:, -1])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        if pace.done():
            break
    stop.set()
    drawer.join()
    print(f"loss {loss.item():.2f}")
    pace.show()


if __name__ == "__main__":
    torch.set_num_threads(1)
    folder = tempfile.mkdtemp(prefix="crosswords")
    try:
        run(options(), folder)
    finally:
        shutil.rmtree(folder)
