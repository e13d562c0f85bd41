"""report() and views(): a recorded run in Python, as a page and as tables."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent
HEADRACE = os.environ.get("HEADRACE", str(SOURCE / "build/headrace"))
sys.path.insert(0, str(SOURCE / "probes/python"))

import headrace  # noqa: E402

PIPELINE = """pipeline = { name = "small" }
source = { synthetic = { elements = 40, rows = 8 } }
consumer = { step = "1ms" }
stage = [{ name = "load", operators = [{ sleep = "1ms" }] }, { name = "parse", operators = [{ spin = "1ms" }] }]
"""


class Results(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.db = os.path.join(cls.folder.name, "runs.db")
        pipeline = os.path.join(cls.folder.name, "small.toml")
        pathlib.Path(pipeline).write_text(PIPELINE, encoding="utf-8")
        for name in ("first", "second <b>"):
            subprocess.run([HEADRACE, "run", pipeline, "--db", cls.db, "--name", name, "--level", "1", "--quiet"], check=True)
        os.environ.setdefault("HEADRACE", HEADRACE)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_report_is_a_page_and_data(self):
        report = headrace.report("first", self.db)
        self.assertTrue(report.data["schema"].startswith("headrace.report/"))
        self.assertEqual(report.data["run"]["name"], "first")
        self.assertIn("first", repr(report))
        page = report._repr_html_()
        self.assertTrue(page.startswith("<iframe srcdoc="))
        self.assertEqual(page.count("<"), 2, "the page is text of an attribute, whatever it holds")
        path = os.path.join(self.folder.name, "page.html")
        report.save(path)
        self.assertIn("<html", pathlib.Path(path).read_text(encoding="utf-8"))

    def test_report_of_no_run_says_so_in_one_line(self):
        with self.assertRaises(headrace.ReportError) as caught:
            headrace.report("nosuch", self.db)
        self.assertIn("nosuch", str(caught.exception))
        self.assertEqual(len(str(caught.exception).splitlines()), 1)

    def test_rows_of_a_run(self):
        views = headrace.views(self.db)
        self.assertIn("operator_summary", views)
        self.assertGreater(len(views.names()), 30)
        operators = {row["operator"] for row in views.rows("operator_summary", run="latest")}
        self.assertTrue({"load", "parse"} <= operators, operators)
        self.assertEqual(len(views.rows("run_summary")), 2)
        self.assertEqual([row["name"] for row in views.rows("run_summary", run="first")], ["first"])
        self.assertIsNone(views.rows("operator_summary", run=1)[0]["on_cpu_ns"], "level 1 separates nothing")

    def test_what_is_not_there_is_named(self):
        views = headrace.views(self.db)
        for name in ("nosuch", "runs", "run_summary; DROP TABLE runs"):
            with self.assertRaises(KeyError):
                views.rows(name)
        with self.assertRaises(KeyError):
            views.rows("run_summary", run="nosuch")
        with self.assertRaises(KeyError):
            views.rows("split_rule", run="latest")
        foreign = os.path.join(self.folder.name, "foreign")
        pathlib.Path(foreign).write_text("hello" * 1000, encoding="utf-8")
        for path in (foreign, os.path.join(self.folder.name, "nowhere.db")):
            with self.assertRaises(ValueError):
                headrace.views(path)
        self.assertFalse(os.path.exists(os.path.join(self.folder.name, "nowhere.db")))

    def test_nothing_can_be_written(self):
        views = headrace.views(self.db)
        with self.assertRaises(Exception):
            views._store.execute("DELETE FROM runs")

    def test_arrow_keeps_whole_numbers_and_gaps(self):
        try:
            import pyarrow
        except ImportError:
            self.skipTest("pyarrow is not installed")
        table = headrace.views(self.db).arrow("run_summary")
        self.assertEqual(table.column("started_realtime_ns").type, pyarrow.int64())
        self.assertEqual(table.num_rows, 2)
        table = headrace.views(self.db)["operator_summary"]
        self.assertEqual(table.column("on_cpu_ns").null_count, table.num_rows)

    def test_pandas_keeps_whole_numbers(self):
        try:
            import pandas  # noqa: F401
        except ImportError:
            self.skipTest("pandas is not installed")
        frame = headrace.views(self.db).pandas("run_summary")
        exact = headrace.views(self.db).rows("run_summary")
        self.assertEqual([int(value) for value in frame["started_realtime_ns"]], [row["started_realtime_ns"] for row in exact])


if __name__ == "__main__":
    unittest.main()
