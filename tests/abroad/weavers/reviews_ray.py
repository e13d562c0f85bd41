"""Star ratings from product reviews: Ray Data encodes the words, a bag-of-words model in torch learns."""
import json
import pathlib
import shutil
import tempfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import ray
import torch

from pace import Pace, options

WORDS, TOKENS, BATCH = 100_000, 40, 256


def make_reviews(folder, files=4, rows=4096):
    rng = np.random.default_rng(11)
    words = [f"word{number}" for number in range(WORDS)]
    (folder / "vocabulary.json").write_text(json.dumps({word: [code, 1.0 / (code + 1)] for code, word in enumerate(words)}))
    paths = []
    for part in range(files):
        picks = rng.zipf(1.3, (rows, TOKENS)) % WORDS
        text = [" ".join(words[pick] for pick in row) for row in picks]
        path = folder / f"reviews{part}.parquet"
        pq.write_table(pa.table({"text": text, "stars": rng.integers(1, 6, rows)}), path, row_group_size=512)
        paths.append(path)
    return paths


def row_groups(paths):
    """The parquet files' row groups, as blocks of the object store."""
    for path in paths:
        source = pq.ParquetFile(path)
        for group in range(source.num_row_groups):
            yield ray.put(source.read_row_group(group))


def encode(texts, vocabulary):
    codes = np.zeros((len(texts), TOKENS), np.int64)
    for row, text in enumerate(texts):
        for column, word in enumerate(text.split()[:TOKENS]):
            codes[row, column] = vocabulary.get(word, (0, 0))[0]
    return codes


def encode_reviews(batch, path):
    with open(path) as source:
        vocabulary = json.load(source)
    return {"codes": encode(batch["text"], vocabulary), "stars": batch["stars"]}


class ReviewEncoder:
    def __init__(self, path):
        with open(path) as source:
            self.vocabulary = json.load(source)

    def __call__(self, batch):
        return {"codes": encode(batch["text"], self.vocabulary), "stars": batch["stars"]}


def main():
    args = options()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="reviews"))
    torch.set_num_threads(1)
    try:
        paths = make_reviews(folder)
        vocabulary = str(folder / "vocabulary.json")
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR",
                 object_store_memory=200 * 2**20)
        ray.data.DataContext.get_current().enable_progress_bars = False
        reviews = ray.data.from_arrow_refs(list(row_groups(paths)) * 100)  # a hundred epochs
        if args.fix:
            reviews = reviews.map_batches(ReviewEncoder, fn_constructor_args=(vocabulary,), batch_size=BATCH, concurrency=1)
        else:
            reviews = reviews.map_batches(encode_reviews, fn_kwargs={"path": vocabulary}, batch_size=BATCH)
        model = torch.nn.Sequential(torch.nn.EmbeddingBag(WORDS, 16, sparse=True), torch.nn.Linear(16, 5))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        pace = Pace(args.seconds)
        for batch in reviews.iter_batches(batch_size=BATCH, batch_format="numpy", prefetch_batches=2):
            codes, stars = torch.from_numpy(batch["codes"].copy()), torch.from_numpy(batch["stars"].copy()) - 1
            loss = torch.nn.functional.cross_entropy(model(codes), stars)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if pace.done():
                break
        pace.show()
    finally:
        ray.shutdown()
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
