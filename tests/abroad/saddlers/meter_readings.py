"""Tomorrow's consumption of a household from a day of smart-meter readings; Ray Data feeds a torch model."""
import os
import shutil
import tempfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import ray
import torch

from pace import Pace, options

HOURS = [f"h{hour:02}" for hour in range(24)]
INPUTS = HOURS + ["outside", "weekday"]
BATCH = 512


def record_days(folder, files=4, rows=40000):
    rng = np.random.default_rng(23)
    for number in range(files):
        days = rng.gamma(2.0, 0.3, size=(rows, 24)).astype(np.float32)
        columns = {hour: days[:, place] for place, hour in enumerate(HOURS)}
        columns["outside"] = rng.normal(9, 7, size=rows).astype(np.float32)
        columns["weekday"] = rng.integers(7, size=rows).astype(np.float32)
        columns["tomorrow"] = (days.sum(1) - 0.1 * columns["outside"]).astype(np.float32)
        pq.write_table(pa.table(columns), os.path.join(folder, f"district{number}.parquet"))


def day_by_day(days):
    inputs, tomorrow = [], []
    for day in days.iter_rows():
        inputs.append([day[name] for name in INPUTS])
        tomorrow.append(day["tomorrow"])
        if len(inputs) == BATCH:
            yield torch.tensor(inputs), torch.tensor(tomorrow)
            inputs, tomorrow = [], []


def many_days(days):
    for batch in days.iter_batches(batch_size=BATCH, batch_format="numpy", drop_last=True):
        inputs = np.stack([batch[name] for name in INPUTS], axis=1)
        yield torch.from_numpy(inputs), torch.from_numpy(np.array(batch["tomorrow"]))


def main():
    args = options()
    folder = tempfile.mkdtemp(prefix="meters")
    try:
        record_days(folder)
        ray.init(num_cpus=2, object_store_memory=200_000_000, include_dashboard=False, logging_level="ERROR")
        ray.data.DataContext.get_current().enable_progress_bars = False
        days = ray.data.from_arrow([pq.read_table(os.path.join(folder, name)) for name in os.listdir(folder)])
        batches = many_days if args.fix else day_by_day

        torch.set_num_threads(1)
        model = torch.nn.Sequential(torch.nn.BatchNorm1d(len(INPUTS)), torch.nn.Linear(len(INPUTS), 64),
                                    torch.nn.ReLU(), torch.nn.Linear(64, 1))
        optimizer = torch.optim.Adam(model.parameters(), 1e-3)
        pace, over = Pace(args.seconds), False
        while not over:
            for inputs, tomorrow in batches(days):
                loss = torch.nn.functional.l1_loss(model(inputs)[:, 0], tomorrow)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                over = pace.done()
                if over:
                    break
        print(f"mean error {loss.item():.3f} kWh")
        pace.show()
    finally:
        ray.shutdown()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
