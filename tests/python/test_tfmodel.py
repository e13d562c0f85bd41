"""Stages and operators from models of tf.data's, made by hand."""
import pathlib
import sys
import unittest
from types import SimpleNamespace

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "probes/python"))
from headrace import _tfmodel  # noqa: E402

_UNKNOWN, _ASYNCHRONOUS_MAP, _PREFETCHES = 1, 4, 6


def node(name, inputs=(), kind=_UNKNOWN, busy_ms=0, elements=0, **parameters):
    return SimpleNamespace(name=name, inputs=list(inputs), node_class=kind, processing_time=busy_ms * 1_000_000, num_elements=elements,
                           buffered_elements=0, parameters=[SimpleNamespace(name=n, value=v) for n, v in parameters.items()])


def model(*nodes):
    """By number; the first is the last transformation."""
    return SimpleNamespace(nodes=dict(nodes), output=nodes[0][0], gap_times=[])


def reading(source, read_ms, records, handed_on, kind="TFRecord", repeats="ForeverRepeat"):
    """prefetch(map(repeat(source))): `source` is the node's number, which changes when it is opened again."""
    return model((1, node("Prefetch", [2], _PREFETCHES, buffer_size=2)),
                 (2, node("ParallelMapV2", [3], _ASYNCHRONOUS_MAP, 10, handed_on, parallelism=2)),
                 (3, node(repeats, [source], elements=handed_on)),
                 (source, node(kind, busy_ms=read_ms, elements=records)))


class Model(unittest.TestCase):
    def test_what_ended_between_two_looks_is_inferred(self):
        pipeline = _tfmodel.Pipeline(reading(10, 0, 0, 0), 8)
        source = pipeline.stages[0]
        self.assertEqual(source.name, "tf.data TFRecordDataset", "the thread before the map is called by what has a setting")
        pipeline.update(reading(10, 40, 40, 40))
        self.assertEqual(source.operators["TFRecordDataset"][1:], [40_000_000, 40])
        # It ended with 100 records, and the next one has made 20: 60 were never seen.
        pipeline.update(reading(11, 20, 20, 120))
        _, busy_ns, elements = source.operators["TFRecordDataset"]
        self.assertEqual((elements, busy_ns), (120, 120_000_000))
        for look in range(12, 40):
            pipeline.update(reading(look, 20, 20, 120 + 80 * (look - 11)))
        _, busy_ns, elements = source.operators["TFRecordDataset"]
        self.assertEqual((elements, busy_ns), (120 + 80 * 28, (120 + 80 * 28) * 1_000_000))

    def test_what_stays_is_counted_as_it_is(self):
        pipeline = _tfmodel.Pipeline(reading(10, 0, 0, 0, repeats="Shuffle"), 8)
        pipeline.update(reading(10, 20, 20, 120, repeats="Shuffle"))  # its buffer is no loss
        self.assertEqual(pipeline.stages[0].operators["TFRecordDataset"][1:], [20_000_000, 20])

    def test_what_no_setting_divides_stays_one(self):
        made = model((1, node("Prefetch", [2], _PREFETCHES, buffer_size=2)), (2, node("BatchV2", [3], busy_ms=1, elements=9)),
                     (3, node("FlatMap", [4, 5], elements=36)), (4, node("Tensor")), (5, node("Generator", busy_ms=30, elements=36)))
        stage = _tfmodel.Pipeline(made, 8, {"from_generator"}).stages[0]
        self.assertEqual((stage.name, stage.most), ("tf.data prefetch", 1))

    def test_a_generator_of_a_librarys_has_the_name_of_what_it_calls(self):
        class Dataset:
            def __init__(self, inner=None, **attributes):
                self._input_dataset = inner
                self.__dict__.update(attributes)

        made = Dataset(Dataset(_headrace_generator="Signals.__getitem__"))
        self.assertEqual(_tfmodel.generator_of(made), "Signals.__getitem__")
        self.assertEqual(_tfmodel.generator_of(Dataset(Dataset())), "from_generator")
        nodes = model((1, node("Prefetch", [2], _PREFETCHES, buffer_size=2)), (2, node("Generator", busy_ms=30, elements=36)))
        stage = _tfmodel.Pipeline(nodes, 8, {"from_generator"}, 0, "Signals.__getitem__").stages[0]
        self.assertEqual(list(stage.operators), ["Signals.__getitem__"])
        self.assertEqual(stage.operators["Signals.__getitem__"][0], "thread_call")

    def test_an_interleave_runs_as_many_as_it_has_sources(self):
        made = model((1, node("Prefetch", [2], _PREFETCHES, buffer_size=2)), (2, node("InterleaveDataset", [3, 4], busy_ms=1, elements=9)),
                     (3, node("Range")), (4, node("Generator", busy_ms=30, elements=9)))
        for sources, most in ((4, 4), (0, 0)):
            stage = _tfmodel.Pipeline(made, 8, {"from_generator"}, sources).stages[0]
            self.assertEqual((stage.name, stage.most), ("tf.data interleave", most))
            self.assertEqual(stage.operators["from_generator"][0], "thread_call")
            self.assertEqual(stage.operators["interleave"][0], "fetch")


if __name__ == "__main__":
    unittest.main()
