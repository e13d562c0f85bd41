"""KJT and IKJT against TorchRec's KeyedJaggedTensor. Needs HEADRACE_TORCHREC_PYTHON, an interpreter that can import torchrec."""
import os
import subprocess
import tempfile
import unittest

HEADRACE = os.environ.get("HEADRACE", "")
PYTHON = os.environ.get("HEADRACE_TORCHREC_PYTHON", "")

# Run by that interpreter: PLAIN and DEDUP are dumps of the same batches. Prints how many lists it compared.
COMPARE = r"""
import json, pathlib, sys
import numpy, torch
from torchrec.sparse.jagged_tensor import KeyedJaggedTensor

def load(folder, name, weighted):
    array = lambda part: torch.from_numpy(numpy.load(folder / f"{name}.{part}.npy"))
    return dict(lengths=array("lengths"), offsets=array("offsets"), values=array("values"),
                weights=array("weights") if weighted else None)

def kjt(keys, parts):
    return KeyedJaggedTensor(keys=keys, values=parts["values"], lengths=parts["lengths"].long(), weights=parts["weights"])

def same(a, b, what):
    assert a.dtype == b.dtype or a.is_floating_point() == b.is_floating_point(), what
    assert torch.equal(a, b.to(a.dtype)), what

compared = groups = 0
plain_root, dedup_root = map(pathlib.Path, sys.argv[1:3])
batches = sorted(p.name for p in plain_root.iterdir())
assert batches == sorted(p.name for p in dedup_root.iterdir()) and batches
for name in batches:
    plain, dedup = plain_root / name, dedup_root / name
    about, grouped = (json.loads((p / "batch.json").read_text()) for p in (plain, dedup))
    rows = about["rows_count"]
    assert not about["groups"]
    theirs = {}
    for kind in ("sparse", "weighted"):
        parts = load(plain, kind, kind == "weighted")
        if not about[kind]: continue
        ours = kjt(about[kind], parts)
        # What we say of the tensor is what TorchRec derives from values and lengths alone.
        assert ours.stride() == rows
        same(ours.offsets(), parts["offsets"], "offsets")
        for k, (key, jagged) in enumerate(ours.to_dict().items()):
            assert key == about[kind][k]
            begin, end = parts["offsets"][k * rows], parts["offsets"][(k + 1) * rows]
            same(jagged.values(), parts["values"][begin:end], key)
            same(jagged.lengths(), parts["lengths"][k * rows:(k + 1) * rows], key)
            if kind == "weighted": same(jagged.weights(), parts["weights"][begin:end], key)
            theirs[kind, key] = jagged
            compared += rows
        # Parts of it too.
        for key, piece in zip(about[kind], ours.split([1] * len(about[kind]))):
            same(piece.values(), theirs[kind, key].values(), key)
    places = {kind: {} for kind in ("sparse", "weighted")}
    for group in grouped["groups"]:
        kind = "weighted" if group["weighted"] else "sparse"
        parts = load(dedup, group["files"], group["weighted"])
        inverse = torch.from_numpy(numpy.load(dedup / (group["files"] + ".inverse.npy"))).long()
        unique = kjt(group["keys"], parts)
        assert unique.stride() == group["unique_rows_count"] <= rows and len(inverse) == rows
        # The open form of IKJT: a KeyedJaggedTensor with inverse indices.
        ikjt = KeyedJaggedTensor(keys=group["keys"], values=parts["values"], lengths=parts["lengths"].long(),
                                 weights=parts["weights"], stride_per_key_per_rank=[[unique.stride()]] * len(group["keys"]),
                                 inverse_indices=(group["keys"], inverse.repeat(len(group["keys"]), 1)))
        assert ikjt.variable_stride_per_key()
        for key, place, theirs_inverse in zip(group["keys"], group["places"], ikjt.inverse_indices()[1]):
            one, expected = ikjt[key], theirs[kind, key]
            same(one.lengths()[theirs_inverse], expected.lengths(), key)
            lists = one.to_dense()
            same(torch.cat([lists[i] for i in theirs_inverse.tolist()]), expected.values(), key)
            if group["weighted"]:
                lists = one.to_dense_weights()
                same(torch.cat([lists[i] for i in theirs_inverse.tolist()]), expected.weights(), key)
            places[kind][place] = key
            compared += rows
        groups += 1
    for kind in ("sparse", "weighted"):
        rest = iter(grouped[kind])
        assert [places[kind].get(i) or next(rest) for i in range(len(about[kind]))] == about[kind]
assert groups > 0
print(compared)
"""


def reason():
    if not HEADRACE:
        return "HEADRACE is not set"
    if not PYTHON:
        return "HEADRACE_TORCHREC_PYTHON is not set"
    found = subprocess.run([PYTHON, "-c", "import torchrec"], capture_output=True, text=True)
    return "" if found.returncode == 0 else f"{PYTHON} cannot import torchrec: {found.stderr.strip().splitlines()[-1]}"


class TorchRec(unittest.TestCase):
    def test_tensors_are_torchrecs(self):
        why = reason()
        if why:
            self.skipTest(why)
        with tempfile.TemporaryDirectory() as folder:
            def headrace(*arguments):
                done = subprocess.run([HEADRACE, *arguments], cwd=folder, capture_output=True, text=True)
                self.assertEqual(done.returncode, 0, done.stderr)
            for seed in ("5", "6"):
                table = f"t{seed}"
                headrace("generate", "rm1", "--features", "0.02", "--rows", "1500", "--seed", seed, "--clustered", "-o", table)
                for mode, dump in (("off", "plain"), ("on", "dedup")):
                    headrace("run", f"{table}/pipeline.toml", "--no-record", "--quiet", "--set", "pipeline.order=file", "--set",
                             "pipeline.batch_rows=200", "--set", f"dedup.mode={mode}", "--dump-tensors", f"{dump}{seed}")
                done = subprocess.run([PYTHON, "-c", COMPARE, f"plain{seed}", f"dedup{seed}"], cwd=folder, capture_output=True,
                                      text=True)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertGreater(int(done.stdout.split()[-1]), 10000)


class Dump(unittest.TestCase):
    """The dump itself, without any library: runs everywhere."""

    def test_arrays_have_the_sizes_that_batch_json_says(self):
        import json
        if not HEADRACE:
            self.skipTest("HEADRACE is not set")

        def array(path):  # (type, shape, bytes of data) of a .npy file
            with open(path, "rb") as file:
                data = file.read()
            assert data[:8] == b"\x93NUMPY\x01\x00", path
            length = int.from_bytes(data[8:10], "little")
            assert (10 + length) % 64 == 0 and data[9 + length:10 + length] == b"\n", path
            header = eval(data[10:10 + length].decode(), {})
            return header["descr"], header["shape"], len(data) - 10 - length
        with tempfile.TemporaryDirectory() as folder:
            run = lambda *arguments: subprocess.run([HEADRACE, *arguments], cwd=folder, capture_output=True, text=True)
            self.assertEqual(run("generate", "rm1", "--features", "0.01", "--rows", "600", "--clustered", "-o", "t").returncode, 0)
            dumping = ("run", "t/pipeline.toml", "--no-record", "--quiet", "--set", "dedup.mode=on", "--dump-tensors", "d")
            self.assertEqual(run(*dumping).returncode, 0)
            rows = 0
            for name in sorted(os.listdir(f"{folder}/d")):
                batch = f"{folder}/d/{name}"
                with open(f"{batch}/batch.json") as file:
                    about = json.load(file)
                self.assertEqual(about["schema"], "headrace.tensors/1")
                n = about["rows_count"]
                rows += n
                self.assertEqual(array(f"{batch}/dense.npy"), ("<f4", (n, len(about["dense"])), 4 * n * len(about["dense"])))
                self.assertEqual(array(f"{batch}/row_ids.npy"), ("<u8", (n,), 8 * n))
                tensors = [("sparse", about["sparse"], n), ("weighted", about["weighted"], n)]
                tensors += [(g["files"], g["keys"], g["unique_rows_count"]) for g in about["groups"]]
                for files, keys, lists in tensors:
                    self.assertEqual(array(f"{batch}/{files}.lengths.npy")[1], (len(keys) * lists,))
                    self.assertEqual(array(f"{batch}/{files}.offsets.npy")[1], (len(keys) * lists + 1,))
                for group in about["groups"]:
                    self.assertEqual(array(f"{batch}/{group['files']}.inverse.npy"), ("<i4", (n,), 4 * n))
                self.assertTrue(about["groups"])
            self.assertEqual(rows, 600)
            again = run(*dumping)
            self.assertEqual(again.returncode, 2)
            self.assertIn("is not empty", again.stderr)
