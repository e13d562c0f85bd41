"""Tips of taxi trips: DuckDB picks the trips of one zone and day, XGBoost adds a tree for each such batch."""
import os
import shutil
import tempfile

import duckdb
import numpy as np
import xgboost as xgb

from pace import Pace, options

ZONES, ROWS = 60, 200_000

FEATURES = """
    SELECT t.distance, t.fare, t.passengers, t.hour, z.median_fare, t.fare / greatest(t.distance, 0.1) AS per_km, t.tip
    FROM {trips} t JOIN zones z USING (zone)
    WHERE t.zone = ? AND t.day % 2 = ?
"""


def make_trips(connection, path):
    connection.execute("SELECT setseed(0.4)")
    connection.execute(f"""
        COPY (SELECT zone, day, hour, distance, 2.5 + 1.8 * distance + random() AS fare, passengers,
                     0.2 * distance + (hour > 20)::INT + random() AS tip
              FROM (SELECT (random() * {ZONES - 1})::INT AS zone, (random() * 30)::INT AS day,
                           (random() * 23)::INT AS hour, random() * 12 AS distance,
                           1 + (random() * 4)::INT AS passengers
                    FROM range({ROWS})))
        TO '{path}' (HEADER)
    """)
    connection.execute(f"CREATE TABLE zones AS SELECT zone, median(fare) AS median_fare FROM read_csv('{path}') GROUP BY zone")


class TripBatches:
    def __init__(self, connection, trips):
        self.connection, self.sql = connection, FEATURES.format(trips=trips)
        self.rng = np.random.default_rng(7)

    def __iter__(self):
        while True:
            zone, parity = int(self.rng.integers(ZONES)), int(self.rng.integers(2))
            columns = self.connection.execute(self.sql, [zone, parity]).fetchnumpy()
            tip = np.asarray(columns.pop("tip"), np.float32)
            yield np.stack([np.asarray(column, np.float32) for column in columns.values()], axis=1), tip


def main():
    args = options()
    folder = tempfile.mkdtemp(prefix="taxi_")
    connection = duckdb.connect(config={"threads": 2})
    try:
        path = os.path.join(folder, "trips.csv")
        make_trips(connection, path)
        trips = f"read_csv('{path}')"
        if args.fix:
            connection.execute(f"CREATE TABLE trips AS SELECT * FROM {trips} ORDER BY zone")
            trips = "trips"
        booster, rounds, pace = None, 0, Pace(args.seconds)
        for features, tip in TripBatches(connection, trips):
            batch = xgb.DMatrix(features, tip, nthread=1)
            if booster is None or rounds % 50 == 0:  # start a new ensemble now and then
                booster = xgb.Booster({"max_depth": 4, "eta": 0.2, "nthread": 1, "objective": "reg:squarederror"}, [batch])
            booster.update(batch, rounds)
            rounds += 1
            if pace.done():
                break
        print(booster.eval(batch))
        pace.show()
    finally:
        connection.close()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
