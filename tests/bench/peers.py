#!/usr/bin/env python3
"""Scans of the same logical rows by this reader and by others, on one core, from the page cache: seconds of ours beside seconds of
each peer, in pairs whose order alternates, with a copy of 64 MiB of memory between them to show what the machine does meanwhile.

  flat  the projected features of a generated rm1 table. Ours reads them out of its flattened maps, past the features that are not
        projected; the peers' files have one column per projected feature and nothing else.
  map   20 features of one map column. Ours takes them from the flattened map, and from an ordinary map column of the same rows; an
        ORC file has one map column (feature -> list), which its reader reads whole. Finding the 20 in it is not counted.

Before anything is timed, every peer's columns are compared with ours, value by value. All threads share one CPU; readers with
thread pools are told to use one thread. Every reader makes columns in memory, stripe by stripe (row group by row group) and dropped
again, but for Polars, which makes them all at once: ours its own batches, the peers Arrow's.

usage: peers.py BUILD_FOLDER [--pairs N] [--rows N] [--features F] [--cpu N] [--markdown FILE]
Needs the Python packages pyarrow, numpy, and for their rows duckdb and polars (make bench-peers installs them in a folder of their
own). Exit 3 when a goal is missed (pyarrow.orc, DuckDB and Polars: 3 times; pyarrow.parquet: 2 times).
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

GOALS = {"pyarrow.orc": 3, "DuckDB": 3, "Polars": 3, "pyarrow.parquet": 2}
ZSTD, NONE = "zstd", "uncompressed"


# From the page cache a read more costs about as much as 500 bytes more: holes are read over up to this long.
GAP = "1024"
MIN_RATIO = "1.15"  # a chunk stays compressed only where it shrinks by as much


class Ours:
    """A scan_bench that waits for its next word."""

    def __init__(self, build, table, *options):
        self.process = subprocess.Popen([build / "scan_bench", table, "--gap", GAP, *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True, bufsize=1)

    def ask(self, word):
        self.process.stdin.write(word + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"scan_bench ended with {self.process.wait()}")
        return json.loads(line)

    def scan(self):
        return self.ask("scan")["seconds"]

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def exported(folder):
    """Our columns as Arrow's, a record batch per stripe."""
    import numpy
    import pyarrow

    manifest = json.loads((folder / "manifest.json").read_text())
    batches = []
    for number, stripe in enumerate(manifest["stripes"]):
        data = memoryview((folder / f"{number}.bin").read_bytes())
        at = 0
        ids = iter(stripe["ids"])

        def take(count, kind):
            nonlocal at
            values = numpy.frombuffer(data, kind, count, at)
            at += -(-values.nbytes // 64) * 64
            return values

        arrays = []
        rows = stripe["rows"]
        for column in manifest["columns"]:
            words = take(-(-rows // 64), numpy.uint64)
            present = numpy.unpackbits(words.view(numpy.uint8), bitorder="little", count=rows).astype(bool)
            valid = pyarrow.py_buffer(words)
            if column["kind"] == "dense":
                arrays.append(pyarrow.Array.from_buffers(pyarrow.float32(), rows, [valid, pyarrow.py_buffer(take(rows, numpy.float32))]))
            else:
                offsets = take(rows + 1, numpy.uint32).astype(numpy.int32)
                values = pyarrow.array(take(next(ids), numpy.int64))
                arrays.append(pyarrow.Array.from_buffers(pyarrow.list_(pyarrow.int64()), rows, [valid, pyarrow.py_buffer(offsets)],
                                                         children=[values]))
            assert arrays[-1].null_count == rows - present.sum()
        batches.append(pyarrow.record_batch(arrays, [column["name"] for column in manifest["columns"]]))
    return batches


def as_map(batch):
    """The lists of a batch's columns as one map column: feature number -> list."""
    import numpy
    import pyarrow

    rows, features, begins, counts, bases, values = [], [], [], [], 0, []
    for name, column in zip(batch.schema.names, batch.columns):
        present = numpy.flatnonzero(column.is_valid().to_numpy(zero_copy_only=False))
        offsets = column.offsets.to_numpy()
        rows.append(present)
        features.append(numpy.full(len(present), int(name.split(":")[1]), numpy.int64))
        begins.append(offsets[present].astype(numpy.int64) + bases)
        counts.append((offsets[present + 1] - offsets[present]).astype(numpy.int64))
        values.append(column.values.to_numpy())
        bases += len(values[-1])
    rows, features, begins, counts = map(numpy.concatenate, (rows, features, begins, counts))
    order = numpy.lexsort((features, rows))
    rows, features, begins, counts = rows[order], features[order], begins[order], counts[order]
    ends = numpy.cumsum(counts)
    gather = numpy.arange(ends[-1]) - numpy.repeat(ends - counts, counts) + numpy.repeat(begins, counts)
    lists = pyarrow.ListArray.from_arrays(pyarrow.array(numpy.concatenate([[0], ends]), pyarrow.int32()),
                                          pyarrow.array(numpy.concatenate(values)[gather]))
    entries = numpy.concatenate([[0], numpy.cumsum(numpy.bincount(rows, minlength=batch.num_rows))])
    column = pyarrow.MapArray.from_arrays(pyarrow.array(entries, pyarrow.int32()), pyarrow.array(features), lists)
    return pyarrow.record_batch([column], ["sparse"])


def versions():
    import pyarrow
    found = [f"pyarrow {pyarrow.__version__}"]
    for name in ("duckdb", "polars"):
        try:
            found.append(f"{name} {__import__(name).__version__}")
        except ImportError:
            found.append(f"{name}: not installed, left out")
    return ", ".join(found)


def write_orc(batches, path, version, codec):
    import pyarrow
    from pyarrow import orc
    # A stripe ends only between batches of the writer: so many rows as ours have.
    orc.write_table(pyarrow.Table.from_batches(batches), path, file_version=version, compression=codec, stripe_size=1 << 20,
                    batch_size=batches[0].num_rows)


def write_parquet(batches, path, codec):
    import pyarrow
    from pyarrow import parquet
    parquet.write_table(pyarrow.Table.from_batches(batches), path, compression="NONE" if codec == NONE else codec,
                        row_group_size=batches[0].num_rows)


def readers(path):
    """Name -> a call that gives the file's columns part by part, as the peer reads them best: Polars in one."""
    from pyarrow import orc, parquet

    def orc_parts():
        file = orc.ORCFile(path)
        for stripe in range(file.nstripes):
            yield file.read_stripe(stripe)

    def parquet_parts():
        file = parquet.ParquetFile(path, pre_buffer=False)
        for group in range(file.num_row_groups):
            yield file.read_row_group(group, use_threads=False)

    if path.suffix == ".orc":
        return {"pyarrow.orc": orc_parts}
    found = {"pyarrow.parquet": parquet_parts}
    try:
        import duckdb
        connection = duckdb.connect()
        connection.execute("SET threads = 1")
        # Batches of the engine's own size; with the order of the file it would keep all in memory.
        found["DuckDB"] = lambda: connection.sql(f"SELECT * FROM read_parquet('{path}')").to_arrow_reader()
    except ImportError:
        pass
    try:
        import polars
        found["Polars"] = lambda: [polars.read_parquet(path, parallel="none").to_arrow()]
    except ImportError:
        pass
    return found


def check(name, parts, expected):
    """Ends the comparison where a peer read other values than ours."""
    import pyarrow
    table = pyarrow.concat_tables(pyarrow.Table.from_batches([part]) if isinstance(part, pyarrow.RecordBatch) else part
                                  for part in parts)
    if table.num_rows != expected.num_rows:
        sys.exit(f"{name}: {table.num_rows} rows, {expected.num_rows} expected")
    for column in expected.schema.names:
        theirs = table.column(column).cast(expected.schema.field(column).type).combine_chunks()
        if not theirs.equals(expected.column(column).combine_chunks()):
            sys.exit(f"{name}: column {column} differs from ours")


class Comparison:
    def __init__(self, pairs):
        self.pairs, self.rows, self.missed = pairs, [], []

    def add(self, what, ours, ours_bytes, peer, name, file, rows):
        def timed():
            begin = time.perf_counter()
            for _ in peer():  # a part is dropped when the next one comes, as ours are
                pass
            return time.perf_counter() - begin

        ours.scan(), timed()  # both have their pages and buffers now
        ratios, own, theirs, copies = [], [], [], []
        for pair in range(self.pairs):
            first = pair % 2 == 0
            a = ours.scan() if first else timed()
            copies.append(ours.ask("memcpy")["seconds"])
            b = timed() if first else ours.scan()
            own.append(a if first else b)
            theirs.append(b if first else a)
            ratios.append(theirs[-1] / own[-1])
        ratios.sort()
        ratio, low, high = statistics.median(ratios), ratios[len(ratios) // 10], ratios[-1 - len(ratios) // 10]
        goal = GOALS.get(name)
        line = (f"| {what} | {name} | {ours_bytes / rows:.0f} / {file.stat().st_size / rows:.0f} | "
                f"{statistics.median(own) / rows * 1e9:.0f} | {statistics.median(theirs) / rows * 1e9:.0f} | "
                f"**{ratio:.2f}** [{low:.2f}, {high:.2f}] | {goal or ''} | {(64 << 20) / statistics.median(copies) / 1e9:.1f} |")
        self.rows.append(line)
        print(line, flush=True)
        if goal and ratio < goal:
            self.missed.append(f"{what}, {name}: {ratio:.2f}, {goal} wanted")


HEADER = ("| what | peer | bytes a row in the file, ours / peer | ours, ns a row | peer, ns a row | peer / ours [10 %, 90 %] | goal | "
          "memcpy GB/s |\n|---|---|---|---|---|---|---|---|")


def size_of(table):
    return sum(path.stat().st_size for path in table.glob("*.dwrf"))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--pairs", type=int, default=9)
    parser.add_argument("--rows", type=int, default=16384)
    parser.add_argument("--stripe-rows", type=int, default=2048)
    parser.add_argument("--features", default="0.0625")
    parser.add_argument("--cpu", type=int, default=max(os.sched_getaffinity(0)))
    parser.add_argument("--markdown", type=pathlib.Path)
    options = parser.parse_args()
    os.sched_setaffinity(0, {options.cpu})  # before the peers start their pools
    os.environ["POLARS_MAX_THREADS"] = "1"
    try:
        import numpy
        import pyarrow
    except ImportError as missing:
        sys.exit(f"peers.py: {missing}: install pyarrow and numpy (make bench-peers does)")
    del numpy
    pyarrow.set_cpu_count(1)
    pyarrow.set_io_thread_count(1)
    print(versions())
    comparison = Comparison(options.pairs)
    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place)

        def generate(name, codec):
            subprocess.run([options.build / "headrace", "generate", "rm1", "-o", folder / name, "--features", options.features, "--rows",
                            str(options.rows), "--stripe-rows", str(options.stripe_rows), "--seed", "1", "--optimize", "off", "--compression", codec],
                           check=True, capture_output=True)
            return folder / name

        def rewrite(table, out, *how):
            subprocess.run([options.build / "headrace", "rewrite", table, "-o", out, *how], check=True, capture_output=True)

        def export(table, *keys):
            out = folder / "export"
            subprocess.run([options.build / "scan_bench", table, *keys, "--export", out], check=True)
            batches = exported(out)
            for file in out.iterdir():
                file.unlink()
            return batches

        tables = {NONE: generate("plain", "none"), ZSTD: generate("zstd", "zstd")}
        batches = export(tables[NONE])
        expected = pyarrow.Table.from_batches(batches)
        print(f"{options.rows} rows in stripes of {options.stripe_rows}; {len(expected.schema.names)} features projected; CPU "
              f"{options.cpu}, {options.pairs} pairs\n\n{HEADER}", flush=True)
        for codec in (NONE, ZSTD):
            files = {}
            for version, words in (("0.11", "ORC, RLEv1"), ("0.12", "ORC, RLEv2")):
                files[f"flat, {words}, {codec}"] = folder / f"{version}-{codec}.orc"
                write_orc(batches, folder / f"{version}-{codec}.orc", version, codec)
            files[f"flat, Parquet, {codec}"] = folder / f"{codec}.parquet"
            write_parquet(batches, folder / f"{codec}.parquet", codec)
            own = {"": tables[codec]}
            if codec == ZSTD:  # our writer's way to spend no time on what hardly shrinks
                own[f", ours where it gains {MIN_RATIO}"] = folder / "ratio"
                rewrite(tables[codec], folder / "ratio", "--min-ratio", MIN_RATIO)
            for which, table in own.items():
                ours = Ours(options.build, table)
                for what, file in files.items():
                    for name, read in readers(file).items():
                        check(f"{what}, {name}", read(), expected)
                        comparison.add(what + which, ours, size_of(table), read, name, file, options.rows)
                ours.close()
            for file in files.values():
                file.unlink()
        del batches, expected

        maps = [as_map(batch) for batch in export(tables[NONE], "--keys", "sparse")]
        expected = pyarrow.Table.from_batches(maps)
        for codec in (NONE, ZSTD):
            file = folder / f"map-{codec}.orc"
            write_orc(maps, file, "0.11", codec)
            [(name, read)] = readers(file).items()
            check(f"map, {name}", read(), expected)
            layouts = {"flattened": tables[codec], "ordinary map": folder / f"maps-{codec}"}
            rewrite(tables[codec], layouts["ordinary map"], "--layout", "map")
            for layout, table in layouts.items():
                # An ordinary map does not say what keys it has: the ones of the flattened table.
                ours = Ours(options.build, table, "--keys", "sparse:20", "--keys-of", tables[codec])
                comparison.add(f"map, 20 features, {layout}, {codec}", ours, size_of(table), read,
                               name if layout == "flattened" else "pyarrow.orc, whole map", file, options.rows)
                ours.close()
            file.unlink()
    if options.markdown:
        options.markdown.write_text(HEADER + "\n" + "\n".join(comparison.rows) + "\n")
    for line in comparison.missed:
        print("MISSED:", line)
    return 3 if comparison.missed else 0


if __name__ == "__main__":
    sys.exit(main())
