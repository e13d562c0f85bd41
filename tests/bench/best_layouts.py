#!/usr/bin/env python3
"""CPU time and bytes of reading the same columns with this reader and with others, each in several layouts: what matters is the best
that each can do. One core, page cache warm, files opened inside the clock, CPU time of the whole process (all threads share one CPU).

Ours reads the projected features out of a table that has all of them; the others' files have the projected columns and nothing else.
The bytes beside the time are those of the projected columns: of ours the streams that the projection wants and the files' footers, of
the others the whole file. (Our footers speak of all columns, ten times as many.) Codecs have the same level where the format's writer takes one (zstd 3). Rows are batched as the file has
them; each batch is dropped when the next comes. Memory-mapped Arrow is counted with one copy of every buffer, because a mapped file that
nobody has read is not columns in memory.

Before anything is timed, each reader's columns are compared with ours, value by value. Rounds in drawn order; the seed is printed.

usage: best_layouts.py BUILD_FOLDER [--rounds N] [--rows N] [--features F] [--seed N] [--cpu N] [--markdown FILE] [--svg FILE]
Needs pyarrow and numpy; duckdb, polars, vortex-data, pylance and datasets for their rows (make bench-peers installs them).
"""
import argparse
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from peers import Ours, check, exported  # noqa: E402

LEVEL = 3  # of zstd, ours and theirs
GROUPS = (2048, 16384, 65536)  # rows of a row group, stripe or record batch


class Reader:
    """A file or folder in one layout, and a call that gives its columns part by part."""

    def __init__(self, name, layout, path, parts):
        self.name, self.layout, self.path, self.parts = name, layout, path, parts

    def bytes(self):
        if self.path.is_file():
            return self.path.stat().st_size
        return sum(file.stat().st_size for file in self.path.rglob("*") if file.is_file())

    def cpu_seconds(self):
        begin = time.process_time()
        for _ in self.parts():
            pass
        return time.process_time() - begin


class OurTable:
    name = "headrace"

    def __init__(self, build, table, layout):
        self.layout, self.process = layout, Ours(build, table)

    def bytes_a_row(self):
        steps = self.process.ask("steps")
        return steps["wanted_bytes"] + steps["footer_bytes"]

    def cpu_seconds(self):
        return self.process.ask("open")["cpu_seconds"]


def parquet_readers(table, folder):
    from pyarrow import parquet
    ids = [f"{name}.list.element" for name, kind in zip(table.schema.names, table.schema.types) if str(kind).startswith("list")]
    floats = [name for name, kind in zip(table.schema.names, table.schema.types) if not str(kind).startswith("list")]
    zstd = {"compression": "zstd", "compression_level": LEVEL}
    delta = {"use_dictionary": False, "column_encoding": {**dict.fromkeys(ids, "DELTA_BINARY_PACKED"),
                                                          **dict.fromkeys(floats, "BYTE_STREAM_SPLIT")}}
    kinds = {f"dictionary, zstd {LEVEL}": zstd, "dictionary, lz4": {"compression": "lz4"},
             "dictionary, no codec": {"compression": "none"}, "plain, no codec": {"compression": "none", "use_dictionary": False},
             f"delta and byte split, zstd {LEVEL}": {**delta, **zstd}}
    for kind, how in kinds.items():
        for rows in GROUPS if "zstd" in kind and "dictionary" in kind else GROUPS[1:2]:
            path = folder / f"{len(list(folder.iterdir()))}.parquet"
            parquet.write_table(table, path, row_group_size=rows, **how)

            def parts(path=path):
                file = parquet.ParquetFile(path, pre_buffer=False)
                for group in range(file.num_row_groups):
                    yield file.read_row_group(group, use_threads=False)

            yield Reader("pyarrow.parquet", f"{kind}, groups of {rows}", path, parts)


def parquet_engines(table, folder):
    """Other readers of Parquet, on its two best layouts."""
    from pyarrow import parquet
    for codec in ("zstd", "lz4"):
        path = folder / f"engines-{codec}.parquet"
        parquet.write_table(table, path, row_group_size=16384, compression=codec,
                            compression_level=LEVEL if codec == "zstd" else None)
        layout = f"dictionary, {codec}, groups of 16384"
        try:
            import duckdb
            connection = duckdb.connect()
            connection.execute("SET threads = 1")
            yield Reader("DuckDB", layout, path,
                         lambda path=path, c=connection: c.sql(f"SELECT * FROM read_parquet('{path}')").to_arrow_reader())
        except ImportError:
            pass
        try:
            import polars
            yield Reader("Polars", layout, path, lambda path=path: [polars.read_parquet(path, parallel="none").to_arrow()])
        except ImportError:
            pass


def orc_readers(table, folder):
    from pyarrow import orc
    for codec in ("zstd", "lz4", "uncompressed"):
        for rows, stripe in ((2048, 1 << 20), (16384, 64 << 20)):
            path = folder / f"{codec}-{rows}.orc"
            orc.write_table(table, path, file_version="0.12", compression=codec, stripe_size=stripe, batch_size=rows)

            def parts(path=path):
                file = orc.ORCFile(path)
                for stripe in range(file.nstripes):
                    yield file.read_stripe(stripe)

            yield Reader("pyarrow.orc", f"{codec}, stripes of {'2048 rows' if rows == 2048 else '64 MiB'}", path, parts)


def copied(batch):
    """Every buffer of a batch in memory of its own."""
    import numpy
    return [numpy.frombuffer(buffer, numpy.uint8).copy()
            for column in batch.columns for chunk in getattr(column, "chunks", [column]) for buffer in chunk.buffers() if buffer]


def arrow_readers(table, folder):
    import pyarrow
    codecs = {f"zstd {LEVEL}": pyarrow.Codec("zstd", LEVEL), "lz4": pyarrow.Codec("lz4"), "no codec, mapped and copied": None}
    for words, codec in codecs.items():
        for rows in GROUPS[:2]:
            path = folder / f"{words[:4].strip()}-{rows}.arrow"
            options = pyarrow.ipc.IpcWriteOptions(compression=codec, use_threads=False)
            with pyarrow.OSFile(str(path), "wb") as sink, pyarrow.ipc.new_file(sink, table.schema, options=options) as writer:
                writer.write_table(table, max_chunksize=rows)

            def parts(path=path, mapped=codec is None):
                with pyarrow.memory_map(str(path)) as source:
                    reader = pyarrow.ipc.open_file(source, options=pyarrow.ipc.IpcReadOptions(use_threads=False))
                    for i in range(reader.num_record_batches):
                        batch = reader.get_batch(i)
                        yield copied(batch) if mapped else batch

            reader = Reader("Arrow IPC", f"{words}, batches of {rows}", path, parts)
            reader.opaque = codec is None
            yield reader


def huggingface_readers(table, folder):
    import pyarrow
    try:
        import datasets
    except ImportError:
        return
    path = folder / "huggingface.arrow"
    with pyarrow.OSFile(str(path), "wb") as sink, pyarrow.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=1000)  # as its own writer does

    def parts():
        for batch in datasets.Dataset.from_file(str(path)).with_format("arrow").iter(batch_size=16384):
            yield copied(batch)

    reader = Reader("Hugging Face datasets", "mapped Arrow, batches of 16384, copied", path, parts)
    reader.opaque = True
    yield reader


def vortex_readers(table, folder):
    try:
        import vortex
    except ImportError:
        return
    path = folder / "default.vortex"
    vortex.io.write(table, str(path))
    yield Reader("Vortex", "default (cascade of encodings)", path, lambda: vortex.open(str(path)).to_arrow())


def lance_readers(table, folder):
    try:
        import lance
    except ImportError:
        return
    for version in ("2.0", "2.1"):
        path = folder / f"{version}.lance"
        lance.write_dataset(table, str(path), data_storage_version=version)
        yield Reader("Lance", f"default, format {version}", path,
                     lambda path=path: lance.dataset(str(path)).to_batches(batch_size=16384))


OUR_LAYOUTS = {"off (zstd 3, stripes of 2048)": ("--optimize", "off"), "balanced, the default": ("--optimize", "balanced"), "read": ("--optimize", "read"),
               "size": ("--optimize", "size"),
               "off, lz4, stripes of 16384": ("--optimize", "off", "--compression", "lz4", "--stripe-rows", "16384"),
               "off, no codec, stripes of 16384": ("--optimize", "off", "--compression", "none", "--stripe-rows", "16384")}
BASE = "balanced, the default"


def quantile(values, q):
    values = sorted(values)
    return values[min(len(values) - 1, max(0, round(q * (len(values) - 1))))]


def measure(readers, rounds, rows, seed):
    """(reader, bytes a row) -> CPU ns a row of each round."""
    drawn = random.Random(seed)
    found = {reader: [] for reader in readers}
    for reader in readers:
        reader.cpu_seconds()
    for _ in range(rounds):
        for reader in drawn.sample(readers, len(readers)):
            found[reader].append(reader.cpu_seconds() / rows * 1e9)
    return found


def lines_of(found, sizes, base):
    lines = []
    for reader, times in found.items():
        ratios = [mine / ours for mine, ours in zip(times, found[base])]
        lines.append((reader, sizes[reader], statistics.median(times), quantile(times, .1), quantile(times, .9),
                      statistics.median(ratios), quantile(ratios, .1), quantile(ratios, .9)))
    return lines


def markdown(lines):
    text = ["| reader | layout | bytes a row | CPU ns a row [10 %, 90 %] | to headrace's default [10 %, 90 %] |", "|---|---|---|---|---|"]
    best = {}
    for reader, *figures in lines:
        best[reader.name] = min(best.get(reader.name, figures[1]), figures[1])
    for reader, size, mid, low, high, ratio, ratio_low, ratio_high in lines:
        mark = "**" if best[reader.name] == mid else ""
        text.append(f"| {reader.name} | {reader.layout} | {size:.0f} | {mark}{mid:.0f}{mark} [{low:.0f}, {high:.0f}] | "
                    f"{ratio:.2f} [{ratio_low:.2f}, {ratio_high:.2f}] |")
    return "\n".join(text) + "\n"


def chart(lines):
    """Bytes a row against CPU ns a row, both logarithmic: lower and further left is better."""
    import html
    import math
    wide, high, left, top, right, bottom = 900, 560, 70, 20, 190, 50
    sizes, times = [line[1] for line in lines], [line[2] for line in lines]
    span_x, span_y = (min(sizes) * .9, max(sizes) * 1.1), (min(times) * .8, max(times) * 1.2)

    def place(value, span, begin, end):
        return begin + (end - begin) * (math.log(value) - math.log(span[0])) / (math.log(span[1]) - math.log(span[0]))

    names = sorted({line[0].name for line in lines} - {"headrace"})
    palette = ["#b45309", "#7c3aed", "#047857", "#be123c", "#4d7c0f", "#0e7490", "#a21caf", "#57534e"]
    colours = {"headrace": "#1d4ed8", **{name: palette[i % len(palette)] for i, name in enumerate(names)}}
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" font-family="sans-serif" font-size="12">',
           f'<title>Bytes a row and CPU ns a row of readers and layouts</title><rect width="{wide}" height="{high}" fill="white"/>']
    for base in (100, 200, 500, 1000, 2000, 5000, 10000, 20000):
        if span_x[0] <= base <= span_x[1]:
            x = place(base, span_x, left, wide - right)
            out.append(f'<path d="M{x:.0f} {top}V{high - bottom}" stroke="#e5e7eb"/><text x="{x:.0f}" y="{high - bottom + 16}" '
                       f'text-anchor="middle">{base}</text>')
        if span_y[0] <= base <= span_y[1]:
            y = place(base, span_y, high - bottom, top)
            out.append(f'<path d="M{left} {y:.0f}H{wide - right}" stroke="#e5e7eb"/><text x="{left - 6}" y="{y + 4:.0f}" '
                       f'text-anchor="end">{base}</text>')
    out.append(f'<text x="{(left + wide - right) / 2}" y="{high - 10}" text-anchor="middle">bytes a row of the projected columns</text>'
               f'<text transform="translate(16 {high / 2}) rotate(-90)" text-anchor="middle">CPU ns a row, files opened inside the clock</text>')
    for reader, size, mid, *_ in sorted(lines, key=lambda line: line[0].name == "headrace"):
        ours = reader.name == "headrace"
        x, y = place(size, span_x, left, wide - right), place(mid, span_y, high - bottom, top)
        out.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{6 if ours else 4}" fill="{colours[reader.name]}">'
                   f'<title>{html.escape(reader.name)}: {html.escape(reader.layout)}, {size:.0f} bytes, {mid:.0f} ns</title></circle>')
        if ours:
            label = reader.layout.split(" (")[0].removesuffix(", the default").removesuffix(", stripes of 16384")
            out.append(f'<text x="{x + 9:.1f}" y="{y + 4:.1f}" fill="{colours["headrace"]}">{html.escape(label)}</text>')
    for i, name in enumerate(["headrace", *names]):
        y = top + 10 + 20 * i
        out.append(f'<circle cx="{wide - right + 16}" cy="{y}" r="5" fill="{colours[name]}"/><text x="{wide - right + 28}" y="{y + 4}">'
                   f'{html.escape(name)}</text>')
    return "\n".join(out) + "\n</svg>\n"


def export(build, table, folder):
    subprocess.run([build / "scan_bench", table, "--export", folder], check=True)
    batches = exported(folder)
    return batches


def versions():
    from importlib.metadata import PackageNotFoundError, version
    found = []
    for name in ("pyarrow", "duckdb", "polars", "vortex-data", "pylance", "datasets"):
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            found.append(f"{name}: not installed, left out")
    return ", ".join(found)


def make_tables(options, folder, layouts=tuple(OUR_LAYOUTS)):
    """One generated table (the first layout), and its rewritten copies: the same rows, and the same features projected."""
    tables = {}
    for number, layout in enumerate(layouts):
        how = OUR_LAYOUTS[layout]
        tables[layout] = folder / f"ours-{number}"
        if number == 0:
            command = ["generate", "rm1", "-o", tables[layout], "--features", options.features, "--rows", str(options.rows), "--seed", "1"]
        else:
            command = ["rewrite", next(iter(tables.values())), "-o", tables[layout]]
        subprocess.run([options.build / "headrace", *command, *how], check=True, capture_output=True)
    return tables


def make_readers(options, folder, tables):
    import pyarrow
    expected = pyarrow.Table.from_batches(export(options.build, tables[BASE], folder / "export"))
    ours = [OurTable(options.build, table, layout) for layout, table in tables.items()]
    sums = {json.dumps({k: v for k, v in table.process.ask("open").items() if "seconds" not in k}) for table in ours}
    if len(sums) != 1:
        sys.exit(f"our layouts hold different rows: {sums}")
    peers = []
    for make in (parquet_readers, parquet_engines, orc_readers, arrow_readers, huggingface_readers, vortex_readers, lance_readers):
        place = folder / make.__name__
        place.mkdir()
        for reader in make(expected, place):
            if not getattr(reader, "opaque", False):
                check(f"{reader.name}, {reader.layout}", reader.parts(), expected)
            peers.append(reader)
    return ours, peers, len(expected.schema.names)


def arguments():
    """The options that rounds over one table's layouts have."""
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--rows", type=int, default=65536)
    parser.add_argument("--features", default="0.0625")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    parser.add_argument("--cpu", type=int, default=max(os.sched_getaffinity(0)))
    parser.add_argument("--markdown", type=pathlib.Path)
    return parser


def main():
    parser = arguments()
    parser.add_argument("--svg", type=pathlib.Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        tables = make_tables(options, pathlib.Path(place))
        os.sched_setaffinity(0, {options.cpu})  # before the peers start their pools
        os.environ["POLARS_MAX_THREADS"] = "1"
        try:
            import pyarrow
        except ImportError as missing:
            sys.exit(f"best_layouts.py: {missing}: install pyarrow and numpy (make bench-peers does)")
        pyarrow.set_cpu_count(1)
        pyarrow.set_io_thread_count(1)
        ours, peers, columns = make_readers(options, pathlib.Path(place), tables)
        print(f"{versions()}\n{options.rows} rows, {columns} columns; CPU {options.cpu}, {options.rounds} rounds, seed {options.seed}\n",
              flush=True)
        sizes = {table: table.bytes_a_row() for table in ours} | {peer: peer.bytes() / options.rows for peer in peers}
        found = measure(ours + peers, options.rounds, options.rows, options.seed)
        lines = lines_of(found, sizes, next(table for table in ours if table.layout == BASE))
    print(markdown(lines))
    if options.markdown:
        options.markdown.write_text(markdown(lines))
    if options.svg:
        options.svg.write_text(chart(lines))


if __name__ == "__main__":
    main()
