"""Apple orchards: forests of small boosted models for the yield of a tree, one for each batch of rows of a parquet file."""
import os
import queue
import shutil
import tempfile
import threading

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import xgboost as xgb

from pace import Pace, options

ROWS, COLUMNS, BATCH = 96_000, 24, 4000


def plant(path):
    rng = np.random.default_rng(8)
    table = {f"sensor{n}": rng.normal(size=ROWS).astype(np.float32) for n in range(COLUMNS)}
    table["yield"] = (table["sensor0"] * table["sensor1"] + np.sin(table["sensor2"]) + rng.normal(size=ROWS) / 4).astype(np.float32)
    pq.write_table(pa.table(table), path, row_group_size=BATCH * 4)


def harvest(path, rows, over):
    """Rows of the file, again and again, as pairs of numpy arrays."""
    while not over.is_set():
        for part in pq.ParquetFile(path).iter_batches(batch_size=BATCH):
            columns = [part.column(n).to_numpy() for n in range(COLUMNS + 1)]
            pair = np.stack(columns[:-1], axis=1), columns[-1]
            while not over.is_set():
                try:
                    rows.put(pair, timeout=0.2)
                    break
                except queue.Full:
                    pass
            if over.is_set():
                return


class Forest:
    def __init__(self, method):
        self.settings = {"tree_method": method, "max_depth": 6, "eta": 0.3, "nthread": 1, "verbosity": 0}
        self.models = []

    def grow(self, trees, yields):
        data = xgb.DMatrix(trees, yields)
        self.models = self.models[-19:] + [xgb.train(self.settings, data, num_boost_round=4)]


def run(args, folder):
    path = os.path.join(folder, "orchard.parquet")
    plant(path)
    rows, over = queue.Queue(4), threading.Event()
    picker = threading.Thread(target=harvest, args=(path, rows, over), name="picker")
    picker.start()
    forest, pace = Forest("hist" if args.fix else "exact"), Pace(args.seconds)
    while True:
        forest.grow(*rows.get())
        if pace.done():
            break
    over.set()
    picker.join()
    pace.show()


if __name__ == "__main__":
    folder = tempfile.mkdtemp(prefix="orchards")
    try:
        run(options(), folder)
    finally:
        shutil.rmtree(folder)
