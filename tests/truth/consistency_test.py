#!/usr/bin/env python3
"""consistency.py finds each kind of contradiction, and none on a page that has none."""
import unittest

import consistency

GOOD = """ HIGHLY input-bound  The trainer waited 48.8 % of each step [48.3, 49.4] (HIGHLY means over 20 %).
 limit   fetch (probability > 0.99)
 why     fetch can deliver 122 batches/s with 1 thread. Measured: 119 batches/s.
 fix     fetch threads 1 -> 3: +96 % [77, 101] predicted
"""


def report(**changes):
    base = {
        "verdict": {"state": "limited", "limit": {"name": "fetch"}, "stall_ratio": 0.488, "stall_ratio_low": 0.483,
                    "stall_ratio_high": 0.494, "predicted": {"gain_ratio": 0.96, "gain_ratio_low": 0.77, "gain_ratio_high": 1.01}},
        "findings": [{"name": "fetch", "bound_batches_per_second": 122.0}, {"name": "cores", "bound_batches_per_second": 314.0}],
        "changes": [{"knob": "fetch.parallelism"}],
        "page": {"badge": "HIGHLY input-bound", "verdict": "The trainer waited.", "conditions": [],
                 "lines": [{"label": "fix", "text": "fetch threads 1 -> 3"}]}}
    base.update(changes)
    return base


class Consistency(unittest.TestCase):
    def test_a_sound_page(self):
        self.assertEqual(consistency.of_text(GOOD), [])
        self.assertEqual(consistency.of_report(report()), [])

    def test_each_contradiction_of_a_page(self):
        for old, new, word in [
                ("fetch threads 1 -> 3: +96 %", "nothing: it keeps up. +96 %", "keeps up"),
                ("48.8 % of each step", "51.2 % of each step", "outside"),
                ("+96 % [77, 101]", "+4 % [-12, 2]", "outside"),
                ("limit   fetch (probability > 0.99)", "limit   CPU cores (probability 0.98): 0.61 of 1.00 cores are in use", "cores limit"),
                ("1 thread. Measured", "1 thread; parse could do 107 batches/s. Measured", "another 107"),
                ("1 thread. Measured", "1 thread; 0.80 of 0.78 cores are in use. Measured", "0.80 of 0.78"),
                ("limit   fetch (", "limit   undecided: fetch (", "undecided, and sure"),
                ("48.8 % of each step [48.3, 49.4]", "4.8 % of each step [4.3, 5.4]", "graded"),
                ("fetch can deliver 122 batches/s", "fetch can deliver 11.2 k batches/s [12.3 k, 12.9 k]", "outside"),
                ("Measured: 119 batches/s.", "Measured: 119 batches/s. Measured: 103 batches/s.", "measured rates")]:
            with self.subTest(new):
                self.assertIn(old, GOOD)
                found = consistency.of_text(GOOD.replace(old, new))
                self.assertEqual(len(found), 1, found)
                self.assertIn(word, found[0])

    def test_limits_together_need_not_have_the_smallest_bound_first(self):
        page = GOOD.replace("1 thread. Measured", "1 thread; parse could do 107 batches/s. Measured") + " next  CPU cores will limit it\n"
        self.assertEqual(len(consistency.of_text(page)), 1)
        self.assertEqual(consistency.of_text(page.replace("fetch (probability > 0.99)", "fetch and parse together")), [])

    def test_each_contradiction_of_figures(self):
        worse = [{"name": "fetch", "bound_batches_per_second": 199.0}, {"name": "load", "bound_batches_per_second": 161.0}]
        self.assertEqual(len(consistency.of_report(report(findings=worse))), 1)
        unsure = report()
        unsure["verdict"]["predicted"] = {"gain_ratio": 0.04, "gain_ratio_low": -0.12, "gain_ratio_high": 0.18}
        self.assertEqual(len(consistency.of_report(unsure)), 1)
        outside = report()
        outside["verdict"]["stall_ratio"] = 0.6
        self.assertEqual(len(consistency.of_report(outside)), 1)


if __name__ == "__main__":
    unittest.main()
