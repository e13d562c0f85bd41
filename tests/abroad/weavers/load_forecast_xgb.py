"""Backtest of a power load forecast: for each day, a window out of the meter readings and a fresh XGBoost model."""
import pathlib
import shutil
import tempfile

import duckdb
import numpy as np
import pandas as pd
import xgboost as xgb

from pace import Pace, options

DAYS, METERS, WINDOW = 300, 40, 7


def export_readings(path):
    rng = np.random.default_rng(9)
    hours = np.arange(DAYS * 24)
    frame = pd.DataFrame({"hour": np.repeat(hours, METERS), "meter": np.tile(np.arange(METERS), len(hours))})
    frame["temperature"] = (10 + 8 * np.sin(frame["hour"] / 1400) + rng.normal(0, 2, len(frame))).round(2)
    frame["price"] = rng.gamma(4, 12, len(frame)).round(2)
    frame["load"] = (frame["meter"] + 5 * np.sin(frame["hour"] * np.pi / 12) - 0.3 * frame["temperature"]
                     + rng.normal(0, 0.5, len(frame))).round(3)
    frame.to_csv(path, index=False)


def open_readings(path, as_table):
    """A connection in which `readings` can be queried."""
    connection = duckdb.connect()
    connection.execute("set threads = 1")
    kind = "table" if as_table else "view"
    connection.execute(f"create {kind} readings as select * from read_csv('{path}')")
    return connection


def window_before(connection, day):
    query = """select meter, hour % 24 as of_day, (hour // 24) % 7 as weekday, temperature, price, load
               from readings where hour >= ? and hour < ?"""
    return connection.execute(query, [(day - WINDOW) * 24, (day + 1) * 24]).df()


def fit_window(frame):
    target = frame.pop("load")
    matrix = xgb.DMatrix(frame, target)
    params = {"max_depth": 3, "eta": 0.3, "nthread": 1, "tree_method": "hist", "max_bin": 64}
    return xgb.train(params, matrix, num_boost_round=4)


def main():
    args = options()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="load"))
    try:
        path = folder / "readings.csv"
        export_readings(path)
        connection = open_readings(path, as_table=args.fix)
        days = np.random.default_rng(0).integers(WINDOW, DAYS, 1_000_000)
        pace = Pace(args.seconds)
        for day in days:
            booster = fit_window(window_before(connection, int(day)))
            if pace.done():
                break
        pace.show()
        print(f"{booster.num_boosted_rounds()} trees in the last model")
        connection.close()
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
