#!/usr/bin/env python3
"""Batches of 1 MiB from one process to another, in turn over Arrow Flight (gRPC) and over this project's transports: GB/s by the clock, and
CPU seconds a GB of both ends together, which other programs change less.

Flight's server has the batches ready as Arrow's record batches and a client reads them; ours makes frames of tensors and tensors of frames.
Each moves 1 GiB a turn, over TCP and over a Unix socket; ours through shared memory as well. Ratios are of neighbours in the same round.

usage: flight_pairs.py BUILD_FOLDER [--rounds N] [--seed N]          needs pyarrow with Flight, and numpy
"""
import argparse
import json
import multiprocessing
import os
import pathlib
import random
import statistics
import subprocess
import tempfile
import time

TICK = os.sysconf("SC_CLK_TCK")
BATCHES = 1024


def serve(address, ready):
    import numpy
    import pyarrow
    from pyarrow import flight
    # As transport_bench's: 170 floats a row, 20 lists of 0 to 16 ids, 512 rows, about 1 MiB.
    generator = numpy.random.default_rng(1)
    columns = {f"dense:{i}": pyarrow.array(generator.random(512, numpy.float32)) for i in range(170)}
    for i in range(20):
        lengths = generator.integers(0, 17, 512)
        offsets = numpy.concatenate([[0], numpy.cumsum(lengths)]).astype(numpy.int32)
        columns[f"sparse:{i}"] = pyarrow.ListArray.from_arrays(offsets, generator.integers(0, 1 << 62, offsets[-1]))
    batch = pyarrow.record_batch(columns)

    class Server(flight.FlightServerBase):
        def do_get(self, context, ticket):
            return flight.RecordBatchStream(pyarrow.RecordBatchReader.from_batches(batch.schema, (batch for _ in range(BATCHES))))

    server = Server(address)
    ready.put(server.port)
    server.serve()


def cpu_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICK


class Flight:
    def __init__(self, address):
        from pyarrow import flight
        ready = multiprocessing.get_context("spawn").Queue()
        self.server = multiprocessing.get_context("spawn").Process(target=serve, args=(address, ready), daemon=True)
        self.server.start()
        port = ready.get()
        self.client = flight.connect(address if "unix" in address else f"grpc://127.0.0.1:{port}")
        self.ticket = flight.Ticket(b"")

    def move(self):
        begin, cpu = time.monotonic(), time.process_time() + cpu_seconds(self.server.pid)
        size = sum(chunk.data.nbytes for chunk in self.client.do_get(self.ticket))
        return size / 1e9, time.monotonic() - begin, time.process_time() + cpu_seconds(self.server.pid) - cpu

    def close(self):
        self.client.close()
        self.server.terminate()
        self.server.join()


class Ours:
    def __init__(self, build, kind):
        self.kind = kind
        self.process = subprocess.Popen([build / "transport_bench", "serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def move(self):
        self.process.stdin.write(self.kind + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        return answer["bytes"] / 1e9, answer["seconds"], answer["cpu_seconds"]

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def spread(values):
    values = sorted(values)
    return f"{statistics.median(values):.2f} [{values[len(values) // 10]:.2f}, {values[-1 - len(values) // 10]:.2f}]"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        ends = {"Arrow Flight, TCP": Flight("grpc://127.0.0.1:0"), "Arrow Flight, Unix socket": Flight(f"grpc+unix://{folder}/flight"),
                **{f"headrace, {kind}": Ours(options.build, kind) for kind in ("tcp", "unix", "shm")}}
        drawn = random.Random(options.seed)
        found = {name: [] for name in ends}
        for end in ends.values():
            end.move()
        for _ in range(options.rounds):
            for name in drawn.sample(list(ends), len(ends)):
                found[name].append(ends[name].move())
        for end in ends.values():
            end.close()
    print(f"{options.rounds} rounds, seed {options.seed}\n\n| | GB/s | to Flight over TCP | CPU s a GB, both ends | to Flight's |\n|---|---|---|---|---|")
    rival = found["Arrow Flight, TCP"]
    for name, moves in found.items():
        speeds, costs = [size / took for size, took, _ in moves], [cpu / size for size, _, cpu in moves]
        faster = [speed / (size / took) for speed, (size, took, _) in zip(speeds, rival)]
        cheaper = [cost / (cpu / size) for cost, (size, _, cpu) in zip(costs, rival)]
        print(f"| {name} | {spread(speeds)} | {spread(faster)} | {spread(costs)} | {spread(cheaper)} |")


if __name__ == "__main__":
    main()
