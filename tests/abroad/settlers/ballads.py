"""Folk ballads: guesses the century of a verse from its metre and its rhymes."""
import random

import numpy as np
import tensorflow as tf

from pace import Pace, options

WORDS = ("lady lord river willow maiden silver harrow raven sailor kirk yonder mother "
         "burden hollow briar bonnie water gallows harper castle morrow barley").split()
VOWELS = set("aeiouy")
FEATURES = 24
VERSES = 256


def make_verses(count, rng):
    verses, centuries = [], []
    for _ in range(count):
        century = rng.randrange(4)
        lines = [" ".join(rng.choice(WORDS[century * 2:]) for _ in range(rng.randint(6, 9))) for _ in range(4)]
        verses.append("\n".join(lines))
        centuries.append(century)
    return verses, centuries


def syllables(word):
    count, before = 0, False
    for letter in word:
        vowel = letter in VOWELS
        if vowel and not before:
            count += 1
        before = vowel
    return max(count, 1)


def metre(verse):
    """Syllables of each line, stress changes, rhyme of the line ends, alliterations."""
    lines = verse.split("\n")
    row = [0.0] * FEATURES
    ends = []
    for at, line in enumerate(lines):
        words = line.split()
        counts = [syllables(word) for word in words]
        row[at] = sum(counts) / 20.0
        row[4 + at] = sum(1 for a, b in zip(counts, counts[1:]) if a != b) / 10.0
        row[8 + at] = sum(1 for a, b in zip(words, words[1:]) if a[0] == b[0]) / 10.0
        ends.append(words[-1])
    for i in range(len(ends)):
        for j in range(i + 1, len(ends)):
            same = 0
            while same < min(len(ends[i]), len(ends[j])) and ends[i][-1 - same] == ends[j][-1 - same]:
                same += 1
            row[12 + i * 2 + j % 2] += same / 5.0
    for letter in verse:
        if letter != "\n" and letter != " ":
            row[20 + ord(letter) % 4] += 0.01
    return row


def metre_of(texts):
    return np.asarray([metre(text.decode()) for text in texts], np.float32)


def load(texts, centuries):
    rows = tf.numpy_function(metre_of, [texts], tf.float32)
    rows.set_shape([None, FEATURES])
    return rows, centuries


def main():
    given = options()
    verses, centuries = make_verses(2048, random.Random(7))
    data = tf.data.Dataset.from_tensor_slices((verses, centuries)).cache().shuffle(2048).repeat().batch(VERSES)
    data = data.map(load, num_parallel_calls=6 if given.fix else 2).prefetch(4)

    init = tf.random_normal_initializer(0.0, 0.1)
    w1, b1 = tf.Variable(init([FEATURES, 48])), tf.Variable(tf.zeros([48]))
    w2, b2 = tf.Variable(init([48, 4])), tf.Variable(tf.zeros([4]))
    weights = [w1, b1, w2, b2]

    @tf.function
    def train_step(rows, labels):
        with tf.GradientTape() as tape:
            logits = tf.nn.relu(rows @ w1 + b1) @ w2 + b2
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits))
        for weight, grad in zip(weights, tape.gradient(loss, weights)):
            weight.assign_sub(0.05 * grad)
        return loss

    pace = Pace(given.seconds)
    for rows, labels in data:
        loss = train_step(rows, labels)
        if pace.done():
            break
    print(f"loss {float(loss):.3f}")
    pace.show()


if __name__ == "__main__":
    main()
