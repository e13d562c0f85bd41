"""What else goes into the basket: the tills' receipts, enriched with the catalogue by Ray Data."""
import os
import pickle
import shutil
import tempfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import ray
import torch

from pace import Pace, options

PRODUCTS, ITEMS, BATCH, WIDTH = 25000, 6, 128, 16


def stock(folder, tills=300, rows=256):
    rng = np.random.default_rng(5)
    catalogue = {f"sku{number:06}": {"price": float(number % 97), "vector": rng.normal(size=WIDTH).tolist()}
                 for number in range(PRODUCTS)}
    with open(os.path.join(folder, "catalogue.pkl"), "wb") as out:
        pickle.dump(catalogue, out)
    schema = pa.schema([(f"item{place}", pa.string()) for place in range(ITEMS)])
    with pq.ParquetWriter(os.path.join(folder, "receipts.parquet"), schema) as out:
        for _ in range(tills):
            out.write_table(pa.table({name: [f"sku{sku:06}" for sku in rng.integers(PRODUCTS, size=rows)]
                                      for name in schema.names}, schema))


def describe(batch, catalogue):
    items = [[catalogue[sku] for sku in batch[f"item{place}"]] for place in range(ITEMS)]
    vectors = np.array([[item["vector"] for item in place] for place in items], np.float32)
    prices = np.array([[item["price"] for item in place] for place in items], np.float32)
    return {"basket": vectors[:-1].mean(0), "next": vectors[-1], "spent": prices.sum(0)}


def open_catalogue(path):
    with open(path, "rb") as source:
        return pickle.load(source)


def add_products(batch, path):
    return describe(batch, open_catalogue(path))


class AddProducts:
    def __init__(self, path):
        self.catalogue = open_catalogue(path)

    def __call__(self, batch):
        return describe(batch, self.catalogue)


def main():
    args = options()
    folder = tempfile.mkdtemp(prefix="shop")
    try:
        stock(folder)
        ray.init(num_cpus=2, object_store_memory=300_000_000, include_dashboard=False, logging_level="ERROR")
        ray.data.DataContext.get_current().enable_progress_bars = False
        path = os.path.join(folder, "catalogue.pkl")
        tills = pq.ParquetFile(os.path.join(folder, "receipts.parquet"))
        receipts = ray.data.from_arrow([tills.read_row_group(till) for till in range(tills.num_row_groups)])
        if args.fix:
            baskets = receipts.map_batches(AddProducts, fn_constructor_args=(path,), batch_size=BATCH, concurrency=1)
        else:
            baskets = receipts.map_batches(add_products, fn_args=(path,), batch_size=BATCH)

        torch.set_num_threads(1)
        model = torch.nn.Sequential(torch.nn.Linear(WIDTH + 1, 64), torch.nn.ReLU(), torch.nn.Linear(64, WIDTH))
        optimizer = torch.optim.SGD(model.parameters(), 0.01)
        pace, over = Pace(args.seconds), False
        while not over:
            for batch in baskets.iter_batches(batch_size=BATCH, batch_format="numpy"):
                basket = np.concatenate([batch["basket"], batch["spent"][:, None] / 500], axis=1)
                loss = torch.nn.functional.mse_loss(model(torch.from_numpy(basket)),
                                                    torch.from_numpy(np.array(batch["next"])))
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                over = pace.done()
                if over:
                    break
        pace.show()
    finally:
        ray.shutdown()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
