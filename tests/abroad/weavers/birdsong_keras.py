"""Bird calls: short WAV clips to log band energies, a small Keras classifier on top."""
import gc
import pathlib
import shutil
import tempfile
import wave

import numpy as np
import tensorflow as tf
import keras

from pace import Pace, options

RATE, FRAME, HOP, BANDS = 16000, 512, 256, 24
SPECIES = 6


def record_clips(folder, count=96):
    rng = np.random.default_rng(4)
    paths, labels = [], []
    for number in range(count):
        species = number % SPECIES
        t = np.arange(RATE // 2) / RATE
        call = np.sin(2 * np.pi * (1500 + 500 * species) * t * (1 + 0.1 * np.sin(12 * t)))
        pcm = ((call * 0.4 + rng.normal(0, 0.05, t.size)) * 20000).astype("<i2")
        path = folder / f"clip{number:03d}.wav"
        with wave.open(str(path), "wb") as out:
            out.setnchannels(1)
            out.setsampwidth(2)
            out.setframerate(RATE)
            out.writeframes(pcm.tobytes())
        paths.append(str(path))
        labels.append(species)
    return paths, labels


EDGES = np.linspace(4, FRAME // 2, BANDS + 1).astype(int)
WINDOW = np.hanning(FRAME).astype("float32")
FRAMES = (RATE // 2 - FRAME) // HOP + 1


def log_bands(path):
    """Band energies of one clip, frame by frame."""
    with wave.open(path.numpy().decode()) as clip:
        pcm = np.frombuffer(clip.readframes(clip.getnframes()), "<i2").astype("float32") / 32768
    rows = []
    for start in range(0, len(pcm) - FRAME + 1, HOP):
        power = np.abs(np.fft.rfft(pcm[start:start + FRAME] * WINDOW)) ** 2
        row = []
        for low, high in zip(EDGES[:-1], EDGES[1:]):
            row.append(float(np.log(power[low:high].sum() + 1e-6)))
        rows.append(row)
    return np.asarray(rows, "float32")


def load_clip(path, label):
    bands = tf.py_function(log_bands, [path], tf.float32)
    bands.set_shape([FRAMES, BANDS])
    return bands, label


def load_clip_graph(path, label):
    pcm, _ = tf.audio.decode_wav(tf.io.read_file(path), 1, RATE // 2)
    spectrum = tf.signal.stft(pcm[:, 0], FRAME, HOP, FRAME)
    power = tf.abs(spectrum) ** 2
    sums = [tf.reduce_sum(power[:, low:high], 1) for low, high in zip(EDGES[:-1], EDGES[1:])]
    bands = tf.math.log(tf.stack(sums, 1) + 1e-6)
    bands.set_shape([FRAMES, BANDS])
    return bands, label


class Progress(keras.callbacks.Callback):
    def __init__(self, pace):
        super().__init__()
        self.pace = pace

    def on_train_batch_end(self, batch, logs=None):
        if self.pace.done():
            self.model.stop_training = True


def main():
    args = options()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="birdsong"))
    try:
        paths, labels = record_clips(folder)
        calls = tf.data.Dataset.from_tensor_slices((paths, labels)).repeat().shuffle(256)
        calls = calls.map(load_clip_graph if args.fix else load_clip, num_parallel_calls=tf.data.AUTOTUNE)
        calls = calls.batch(16).prefetch(tf.data.AUTOTUNE)
        model = keras.Sequential([keras.layers.Input((FRAMES, BANDS)), keras.layers.Conv1D(16, 3, activation="relu"),
                                  keras.layers.GlobalMaxPooling1D(), keras.layers.Dense(SPECIES, activation="softmax")])
        model.compile("adam", "sparse_categorical_crossentropy")
        pace = Pace(args.seconds)
        model.fit(calls, steps_per_epoch=10**6, epochs=1, verbose=0, callbacks=[Progress(pace)])
        pace.show()
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
    gc.collect()  # the iterators of tf.data end before the interpreter does
