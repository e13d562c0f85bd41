#!/usr/bin/env python3
"""Reads a stream of frames (docs/delivery.md) and prints a line for each batch: what a reader in another language needs, and
no more. The test of frames compares it with what was written.

usage: read_frames.py FILE
"""
import struct
import sys

MASK = (1 << 64) - 1
HEADER = struct.Struct("<IHBBQQQIIIIQQ")
NAMES, BATCH, END = 1, 2, 3
ROW_IDS, LABELS, SPARSE_WEIGHTS, WEIGHTED_WEIGHTS, UNHASHED = 1, 2, 4, 8, 128

try:
    import xxhash
except ImportError:
    xxhash = None  # then the checksum is not looked at


def mixed(numbers):
    total = 0
    for number in numbers:
        total = (total * 31 + number) & MASK
    return total


class Sections:
    """The arrays of a body, one after the other, each from a multiple of 64."""

    def __init__(self, body):
        self.body, self.at = body, 0

    def next(self, count, code):
        size = count * struct.calcsize(code)
        part = self.body[self.at:self.at + size]
        assert len(part) == size, "the body is too short"
        self.at += (size + 63) // 64 * 64
        return struct.unpack(f"<{count}{code}", part)


def read_names(counts, body):
    at = 0

    def number():
        nonlocal at
        at += 4
        return struct.unpack_from("<I", body, at - 4)[0]

    def name():
        nonlocal at
        length = number()
        at += length
        return body[at - length:at].decode()

    lists = [[name() for _ in range(count)] for count in counts]
    # Of each group its name, whether it has weights, and place and name of each key.
    groups = [(name(), number(), [(number(), name()) for _ in range(number())]) for _ in range(number())]
    return lists, groups


def main():
    data = open(sys.argv[1], "rb").read()
    at, names = 0, None
    while at < len(data):
        header = data[at:at + 64]
        (magic, version, kind, flags, size, checksum, sequence, rows, dense, sparse, weighted, sparse_values,
         weighted_values) = HEADER.unpack(header)
        assert magic == int.from_bytes(b"HRTB", "little") and version == 3
        body = data[at + 64:at + 64 + size]
        at += 64 + size
        if flags & UNHASHED:
            assert checksum == 0
        elif xxhash:
            seed = xxhash.xxh3_64_intdigest(header[:16] + bytes(8) + header[24:])
            assert xxhash.xxh3_64_intdigest(body, seed=seed) == checksum, "checksum"
        if kind == NAMES:
            names, groups = read_names((dense, sparse, weighted), body)
            continue
        if kind == END:
            print("end", sequence)
            assert flags & 1 and at == len(data)
            break
        assert kind == BATCH and [dense, sparse, weighted] == [len(each) for each in names]
        sections = Sections(body)
        first_row, num_spans, num_groups = sections.next(8, "Q")[:3]
        assert num_groups == len(groups)
        line = [rows, first_row, mixed(sections.next(rows if flags & ROW_IDS else 0, "Q")),
                mixed(sections.next(rows if flags & LABELS else 0, "I")), mixed(sections.next(rows * dense, "I")), *names[0]]
        for keys, values, weights in ((names[1], sparse_values, flags & SPARSE_WEIGHTS),
                                      (names[2], weighted_values, flags & WEIGHTED_WEIGHTS)):
            lengths = sections.next(len(keys) * rows, "i")
            assert sum(lengths) == values
            line += [*keys, mixed(lengths), mixed(sections.next(values, "q")), mixed(sections.next(values if weights else 0, "I"))]
        sizes = sections.next(2 * num_groups, "Q")  # unique rows and values of each
        for (group, is_weighted, keys), unique, values in zip(groups, sizes[::2], sizes[1::2]):
            inverse, lengths = sections.next(rows, "i"), sections.next(len(keys) * unique, "i")
            assert all(0 <= row < unique for row in inverse) and sum(lengths) == values
            line += [group, is_weighted, *(each for key in keys for each in key), mixed(inverse), mixed(lengths),
                     mixed(sections.next(values, "q")), mixed(sections.next(values if is_weighted else 0, "I"))]
        line += sections.next(num_spans * 5, "Q")  # epoch, split, first, count, rows of each
        assert sections.at == size
        print(*line)


main()
