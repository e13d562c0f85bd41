// Predicts the yield of orchards from binary records of the weather stations.
import java.io.*;
import java.nio.file.*;
import java.util.Random;
import java.util.concurrent.*;

public class Orchards {
    static final int FEATURES = 20, BATCH = 64, RECORDS = 20000;

    record Batch(float[][] weather, float[] yield) {}

    static void writeStations(Path path) throws IOException {
        Random dice = new Random(6);
        try (var out = new DataOutputStream(new BufferedOutputStream(Files.newOutputStream(path)))) {
            for (int n = 0; n < RECORDS; n++) {
                float sum = 0;
                for (int f = 0; f < FEATURES; f++) {
                    float value = (float) dice.nextGaussian();
                    sum += value * (f % 3);
                    out.writeFloat(value);
                }
                out.writeFloat(sum);
            }
        }
    }

    static class StationReader extends Thread {
        final Path path;
        final boolean buffered;
        final BlockingQueue<Batch> out;

        StationReader(Path path, boolean buffered, BlockingQueue<Batch> out) {
            super("station-reader");
            this.path = path;
            this.buffered = buffered;
            this.out = out;
            setDaemon(true);
        }

        InputStream open() throws IOException {
            InputStream file = new FileInputStream(path.toFile());
            return buffered ? new BufferedInputStream(file, 1 << 16) : file;
        }

        Batch readBatch(DataInputStream in) throws IOException {
            var batch = new Batch(new float[BATCH][FEATURES], new float[BATCH]);
            for (int n = 0; n < BATCH; n++) {
                for (int f = 0; f < FEATURES; f++) batch.weather[n][f] = in.readFloat();
                batch.yield[n] = in.readFloat();
            }
            return batch;
        }

        @Override public void run() {
            try {
                while (true) {
                    try (var in = new DataInputStream(open())) {
                        for (int b = 0; b < RECORDS / BATCH; b++) out.put(readBatch(in));
                    }
                }
            } catch (InterruptedException end) {
                return;
            } catch (IOException trouble) {
                throw new UncheckedIOException(trouble);
            }
        }
    }

    static class YieldModel {
        final float[] weights = new float[FEATURES];

        float trainStep(Batch batch) {
            float[] slope = new float[FEATURES];
            float loss = 0;
            for (int n = 0; n < BATCH; n++) {
                float error = -batch.yield[n];
                for (int f = 0; f < FEATURES; f++) error += weights[f] * batch.weather[n][f];
                for (int f = 0; f < FEATURES; f++) slope[f] += error * batch.weather[n][f];
                loss += error * error;
            }
            for (int f = 0; f < FEATURES; f++) weights[f] -= 0.01f * slope[f] / BATCH;
            return loss / BATCH;
        }
    }

    public static void main(String[] args) throws Exception {
        double seconds = 6;
        boolean fix = false;
        for (int i = 0; i < args.length; i++) {
            if (args[i].equals("--fix")) fix = true;
            if (args[i].equals("--seconds")) seconds = Double.parseDouble(args[++i]);
        }
        Path folder = Files.createTempDirectory("orchards"), path = folder.resolve("stations.bin");
        writeStations(path);
        var batches = new ArrayBlockingQueue<Batch>(8);
        var reader = new StationReader(path, fix, batches);
        reader.start();
        var model = new YieldModel();
        float loss = model.trainStep(batches.take());
        long first = System.nanoTime(), start = first, count = 0, skipped = -1;
        for (double gone = 0; gone < seconds; gone = (System.nanoTime() - first) / 1e9) {
            loss = model.trainStep(batches.take());
            count++;
            if (skipped < 0 && gone >= Math.min(1, seconds / 5)) { start = System.nanoTime(); skipped = count; }
        }
        double rate = (count - skipped) / ((System.nanoTime() - start) / 1e9);
        reader.interrupt();
        reader.join();
        Files.delete(path);
        Files.delete(folder);
        System.out.printf("loss %.4f%nrate %.3f batches/s%n", loss, rate);
    }
}
