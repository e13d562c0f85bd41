"""No framework's loader: one reader thread asks SQLite for each batch and puts it in a queue of one; the loop trains with
numpy. The table has no index on the column it asks for. --fix makes the index."""
import os
import queue
import random
import sqlite3
import tempfile
import threading

import numpy

import meter

USERS, ROWS, WIDTH = 2000, 30_000, 64


def fill(path, index):
    source = numpy.random.default_rng(4)
    table = sqlite3.connect(path)
    table.execute("create table events (user integer, features blob)")
    table.executemany("insert into events values (?, ?)",
                      ((row % USERS, source.random(WIDTH, dtype="float32").tobytes()) for row in range(ROWS)))
    if index:
        table.execute("create index by_user on events (user)")
    table.commit()
    table.close()


def read(path, ready):
    table = sqlite3.connect(path)
    while True:
        rows = []
        for user in random.sample(range(USERS), 4):
            rows += table.execute("select features from events where user = ?", (user,)).fetchall()
        ready.put(numpy.stack([numpy.frombuffer(row[0], dtype="float32") for row in rows]))


def main():
    options = meter.arguments()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "events.db")
        fill(path, options.fix)
        ready = queue.Queue(1)
        threading.Thread(target=read, args=(path, ready), daemon=True).start()
        weights = numpy.zeros((WIDTH, 32), dtype="float32")
        clock = meter.Meter(options.seconds)
        while True:
            batch = ready.get()
            for _ in range(20):
                error = batch @ weights - 1
                weights -= 1e-4 * (batch.T @ error)
            if clock.tick():
                break
        clock.show()


if __name__ == "__main__":
    main()
