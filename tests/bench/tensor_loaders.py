#!/usr/bin/env python3
"""CPU time and bytes from stored rows to training tensors: this reader's whole pipeline beside loaders as a PyTorch or TensorFlow trainer
has them, written with vectors of whole columns, never row by row. One core, page cache warm, files opened inside the clock.

A batch is the same everywhere: a dense float matrix (rows x features, 0 where a row has none), the lengths of the lists (int32, feature by
feature) and their ids (int64), as a keyed jagged tensor has them. Before anything is timed, the batches of every loader are compared with
ours, which come over a Unix socket (docs/delivery.md), value by value.

What a long job pays is measured: of each loader the second pass in a row, and of ours, `headrace run` on a pipeline of one fused stage,
the CPU time of a process of 1 + N epochs less that of one of one epoch, over N. Memory is then allocated, and modules are loaded. Tables,
peers' files, bytes a row and rounds are those of best_layouts.py.

usage: tensor_loaders.py BUILD_FOLDER [--rounds N] [--rows N] [--features F] [--seed N] [--cpu N] [--only WORD] [--markdown FILE]
Needs pyarrow, numpy and torch; tensorflow, datasets and vortex-data for their rows (make bench-peers PEERS_ARGS=--tensors installs them).
"""
import argparse
import os
import pathlib
import random
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import best_layouts  # noqa: E402

BATCH_ROWS = 512
EPOCHS = 4
OUR_LAYOUTS = ("balanced, the default", "read", "size")


def plain_list(column, kind):
    """One array of a column of a table or record batch, of the type expected."""
    if hasattr(column, "chunks"):
        column = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    return column if column.type == kind else column.cast(kind)


class Vectors:
    """Batches of tensors out of Arrow's columns: what the loaders share."""

    def __init__(self, schema):
        import pyarrow
        self.schema = schema
        self.dense = [name for name in schema.names if not pyarrow.types.is_list(schema.field(name).type)]
        self.lists = [name for name in schema.names if name not in self.dense]

    def batches(self, part):
        """(dense, lengths, ids) of each batch of a table or record batch. Rows are cut by views: ids are copied once, into the tensor."""
        import numpy
        arrays = {name: plain_list(part.column(name), self.schema.field(name).type) for name in self.schema.names}
        floats = [arrays[name].fill_null(0).to_numpy(zero_copy_only=False) for name in self.dense]
        offsets = [arrays[name].offsets.to_numpy() for name in self.lists]
        ids = [arrays[name].values.to_numpy(zero_copy_only=False) for name in self.lists]
        lengths = [numpy.diff(each) for each in offsets]
        for begin in range(0, part.num_rows, BATCH_ROWS):
            end = min(begin + BATCH_ROWS, part.num_rows)
            yield (numpy.stack([column[begin:end] for column in floats], axis=1),
                   numpy.concatenate([each[begin:end] for each in lengths]),
                   numpy.concatenate([each[at[begin]:at[end]] for each, at in zip(ids, offsets)]))


class Loader:
    """A file in one layout, and a call that gives its batches of tensors."""

    def __init__(self, name, layout, path, batches):
        self.name, self.layout, self.path, self.batches = name, layout, path, batches

    bytes = best_layouts.Reader.bytes

    def cpu_seconds(self):
        for _ in self.batches():
            pass
        begin = time.process_time()
        for _ in self.batches():
            pass
        return time.process_time() - begin


def torch_loader(name, layout, path, parts, vectors):
    import torch

    class Rows(torch.utils.data.IterableDataset):
        def __iter__(self):
            for part in parts():
                for batch in vectors.batches(part):
                    yield tuple(map(torch.from_numpy, batch))

    loader = torch.utils.data.DataLoader(Rows(), batch_size=None, num_workers=0)
    return Loader(name, layout, path, lambda: loader)


def parquet_loaders(table, folder, vectors):
    for reader in best_layouts.parquet_readers(table, folder):
        if reader.layout.startswith("dictionary") and "16384" in reader.layout:
            yield torch_loader("PyTorch, pyarrow.parquet", reader.layout, reader.path, reader.parts, vectors)


def arrow_loaders(table, folder, vectors):
    import pyarrow
    for reader in best_layouts.arrow_readers(table, folder):
        if "16384" not in reader.layout:
            continue
        if not reader.opaque:
            yield torch_loader("PyTorch, Arrow IPC", reader.layout, reader.path, reader.parts, vectors)
            continue

        def parts(path=reader.path):
            with pyarrow.memory_map(str(path)) as source:
                file = pyarrow.ipc.open_file(source)
                for i in range(file.num_record_batches):
                    yield file.get_batch(i)

        layout = reader.layout.replace("mapped and copied", "mapped")
        yield torch_loader("PyTorch, Arrow IPC", layout, reader.path, parts, vectors)
        # What a second epoch finds: pages that are mapped already.
        kept = pyarrow.ipc.open_file(pyarrow.memory_map(str(reader.path)))
        yield torch_loader("PyTorch, Arrow IPC", f"{layout}, before the clock starts", reader.path,
                           lambda file=kept: (file.get_batch(i) for i in range(file.num_record_batches)), vectors)


def huggingface_loaders(table, folder, vectors):
    import pyarrow
    import datasets
    path = folder / "huggingface.arrow"
    with pyarrow.OSFile(str(path), "wb") as sink, pyarrow.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=16384)

    def parts():
        yield from datasets.Dataset.from_file(str(path)).with_format("arrow").iter(batch_size=16384)

    yield torch_loader("PyTorch, Hugging Face datasets", "mapped Arrow, batches of 16384", path, parts, vectors)


def vortex_loaders(table, folder, vectors):
    for reader in best_layouts.vortex_readers(table, folder):
        yield torch_loader("PyTorch, Vortex", reader.layout, reader.path, reader.parts, vectors)


def tensorflow_loaders(table, folder, vectors):
    os.environ.update(TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="")
    import tensorflow
    tensorflow.config.threading.set_intra_op_parallelism_threads(1)
    tensorflow.config.threading.set_inter_op_parallelism_threads(1)
    path = folder / "rows.tfrecord"
    write_records(tensorflow, table, path, vectors)
    wanted = {"dense": tensorflow.io.FixedLenFeature([len(vectors.dense)], tensorflow.float32),
              **{name: tensorflow.io.RaggedFeature(tensorflow.int64) for name in vectors.lists}}

    def parse(records):
        row = tensorflow.io.parse_example(records, wanted)
        lists = [row[name] for name in vectors.lists]
        return (row["dense"], tensorflow.concat([tensorflow.cast(each.row_lengths(), tensorflow.int32) for each in lists], 0),
                tensorflow.concat([each.values for each in lists], 0))

    def batches():
        data = tensorflow.data.TFRecordDataset(str(path), buffer_size=8 << 20).batch(BATCH_ROWS).map(parse)
        options = tensorflow.data.Options()
        options.threading.private_threadpool_size = 1
        return data.with_options(options)

    yield Loader("tf.data, TFRecord", "no codec, dense features as one, parse_example after batch", path, batches)


def write_records(tensorflow, table, path, vectors):
    with tensorflow.io.TFRecordWriter(str(path)) as writer:
        for dense, lengths, ids in vectors.batches(table):
            rows, at = len(dense), 0
            lists = []
            for feature in range(len(vectors.lists)):
                cut = []
                for length in lengths[feature * rows:(feature + 1) * rows]:
                    cut.append(ids[at:at + length])
                    at += length
                lists.append(cut)
            for row in range(rows):
                example = tensorflow.train.Example()
                feature = example.features.feature
                feature["dense"].float_list.value.extend(dense[row])
                for name, cut in zip(vectors.lists, lists):
                    feature[name].int64_list.value.extend(cut[row])
                writer.write(example.SerializeToString())


class OurPipeline:
    name = "headrace"

    def __init__(self, build, table, layout):
        self.layout, self.program = layout, build / "headrace"
        self.file = table / "tensors.toml"
        self.file.write_text(pipeline_text(table / "pipeline.toml"))
        self.scan = best_layouts.OurTable(build, table, layout)

    def bytes_a_row(self):
        return self.scan.bytes_a_row()

    def command(self, setting):
        return [self.program, "run", self.file, "--no-record", "--quiet", "--set", setting]

    def process_seconds(self, epochs):
        process = subprocess.Popen(self.command(f"source.epochs={epochs}"), stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            sys.exit(f"{self.layout}: headrace run ended with {process.returncode}")
        return usage.ru_utime + usage.ru_stime

    def cpu_seconds(self):
        start = self.process_seconds(1)
        return (self.process_seconds(1 + EPOCHS) - start) / EPOCHS


def pipeline_text(generated):
    """The features of a generated pipeline that other formats have too (none with weights), and one stage of one thread."""
    import tomllib
    maps = tomllib.loads(generated.read_text())["projection"]["maps"]
    return (f'[pipeline]\nname = "tensors"\nbatch_rows = {BATCH_ROWS}\norder = "file"\n[source]\ntable = "."\n'
            f'[projection.maps]\ndense = {maps["dense"]}\nsparse = {maps["sparse"]}\n'
            '[[stage]]\nname = "all"\noperators = ["fetch", "decompress", "decode", "extract", "batch", "tensorize"]\nparallelism = 1\n'
            '[consumer]\nkind = "none"\n')


HEADER = struct.Struct("<IHBBQQQIIIIQQ")  # of a frame
BATCH, END = 2, 3


def our_batches(pipeline, folder):
    """(dense, lengths, ids) of each batch, as a consumer in another process gets them."""
    import numpy
    path = folder / "batches.sock"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen(1)
        with subprocess.Popen(pipeline.command(f"delivery.to=unix:{path}")) as process:
            connection, _ = listener.accept()
            with connection, connection.makefile("rb") as stream:
                connection.sendall(stream.read(64))  # its hello, and the word for welcome
                done = 0
                while True:
                    (_, _, kind, flags, size, _, _, rows, dense, keys, _, values, _) = HEADER.unpack(stream.read(64))
                    body = stream.read(size)
                    if kind == END:
                        break
                    if kind != BATCH:
                        continue
                    at = 64 + (-(-rows * 8 // 64) * 64 if flags & 1 else 0)  # behind origin and row ids; there are no labels
                    parts = []
                    for count, of in ((rows * dense, numpy.float32), (rows * keys, numpy.int32), (values, numpy.int64)):
                        parts.append(numpy.frombuffer(body, of, count, at))
                        at += -(-parts[-1].nbytes // 64) * 64
                    yield parts[0].reshape(rows, dense), parts[1], parts[2]
                    done += 1
                    connection.sendall(struct.pack("<Q", done))
        if process.returncode != 0:
            sys.exit(f"headrace run ended with {process.returncode}")
    path.unlink()


def check(who, batches, expected):
    """Ends the comparison where a loader's tensors are not ours."""
    import numpy
    number = -1
    for number, batch in enumerate(batches):
        for what, mine, theirs in zip(("dense", "lengths", "ids"), expected[number] if number < len(expected) else (None,) * 3, batch):
            if mine is None or not numpy.array_equal(mine, theirs.numpy() if hasattr(theirs, "numpy") else theirs):
                sys.exit(f"{who}: {what} of batch {number} differ from ours")
    if number + 1 != len(expected):
        sys.exit(f"{who}: {number + 1} batches, ours are {len(expected)}")


def make_loaders(options, folder, tables):
    import pyarrow
    table = pyarrow.Table.from_batches(best_layouts.export(options.build, tables[best_layouts.BASE], folder / "export"))
    vectors = Vectors(table.schema)
    ours = [OurPipeline(options.build, tables[layout], layout) for layout in OUR_LAYOUTS]
    expected = list(our_batches(ours[0], folder))
    for pipeline in ours[1:]:
        check(f"headrace, {pipeline.layout}", our_batches(pipeline, folder), expected)
    peers = []
    for make in (parquet_loaders, arrow_loaders, huggingface_loaders, vortex_loaders, tensorflow_loaders):
        if options.only not in make.__name__:
            continue
        place = folder / make.__name__
        place.mkdir()
        try:
            for loader in make(table, place, vectors):
                check(f"{loader.name}, {loader.layout}", loader.batches(), expected)
                peers.append(loader)
        except ImportError as missing:
            print(f"{make.__name__}: {missing}, left out")
    return ours, peers, vectors


def markdown(found, sizes, ours):
    """With each loader beside our default, and beside the quickest of ours that reads no more bytes."""
    text = ["| loader | layout | bytes a row | CPU ns a row [10 %, 90 %] | to headrace's default | to headrace's quickest at no more bytes |",
            "|---|---|---|---|---|---|"]
    middle = {each: statistics.median(times) for each, times in found.items()}
    for each, times in found.items():
        within = [mine for mine in ours if sizes[mine] <= sizes[each]]
        cells = []
        for base in (ours[0], min(within, key=middle.get, default=None) if each not in ours else None):
            ratios = sorted(theirs / mine for theirs, mine in zip(times, found[base])) if base else []
            cells.append(f"{statistics.median(ratios):.2f} [{best_layouts.quantile(ratios, .1):.2f}, {best_layouts.quantile(ratios, .9):.2f}]"
                         f"{' (' + base.layout.split(',')[0] + ')' if base != ours[0] else ''}" if base else "")
        text.append(f"| {each.name} | {each.layout} | {sizes[each]:.0f} | {middle[each]:.0f} [{best_layouts.quantile(times, .1):.0f}, "
                    f"{best_layouts.quantile(times, .9):.0f}] | {cells[0]} | {cells[1]} |")
    return "\n".join(text) + "\n"


def versions():
    from importlib.metadata import PackageNotFoundError, version
    found = []
    for names in (("torch",), ("pyarrow",), ("datasets",), ("vortex-data",), ("tensorflow-cpu", "tensorflow")):
        for name in names:
            try:
                found.append(f"{name} {version(name)}")
                break
            except PackageNotFoundError:
                continue
    return ", ".join(found)


def main():
    parser = best_layouts.arguments()
    parser.add_argument("--only", default="", help="loaders whose name has this word: parquet, arrow, huggingface, vortex, tensorflow")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        tables = best_layouts.make_tables(options, pathlib.Path(place), ("off (zstd 3, stripes of 2048)", *OUR_LAYOUTS))
        os.sched_setaffinity(0, {options.cpu})  # before the peers start their pools
        import pyarrow
        import torch
        pyarrow.set_cpu_count(1)
        pyarrow.set_io_thread_count(1)
        torch.set_num_threads(1)
        ours, peers, vectors = make_loaders(options, pathlib.Path(place), tables)
        print(f"{versions()}\n{options.rows} rows in batches of {BATCH_ROWS}: {len(vectors.dense)} dense features, {len(vectors.lists)} lists; "
              f"CPU {options.cpu}, {options.rounds} rounds, seed {options.seed}\n", flush=True)
        sizes = {each: each.bytes_a_row() for each in ours} | {each: each.bytes() / options.rows for each in peers}
        found = best_layouts.measure(ours + peers, options.rounds, options.rows, options.seed)
        text = markdown(found, sizes, ours)
    print(text)
    if options.markdown:
        options.markdown.write_text(text)


if __name__ == "__main__":
    main()
