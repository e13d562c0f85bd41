// Tide prediction: harmonic fit to the gauges' logs. java TideGauge.java [--seconds S] [--fix]
import java.io.BufferedReader;
import java.io.BufferedWriter;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.LocalDateTime;
import java.time.ZoneOffset;
import java.util.Random;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;

public class TideGauge {
    static final int ROWS = 2048;
    static final double[] PERIODS = {12.4206, 12.0, 25.8193, 23.9345};

    record Batch(double[] hour, double[] level) {}

    static Path log() throws IOException {
        Path file = Files.createTempFile("gauge", ".csv");
        file.toFile().deleteOnExit();
        Random random = new Random(4);
        LocalDateTime when = LocalDateTime.of(2019, 1, 1, 0, 0, 1);
        try (BufferedWriter out = Files.newBufferedWriter(file)) {
            for (int i = 0; i < 60000; i++) {
                when = when.plusMinutes(6);
                double h = i / 10.0, level = 2 + Math.sin(h * 2 * Math.PI / PERIODS[0]) + random.nextGaussian() * 0.05;
                out.write(when + ",GAUGE" + i % 7 + "," + level + "," + (1013 + random.nextGaussian() * 9) + "," + random.nextDouble() * 20 + "\n");
            }
        }
        return file;
    }

    static void drain(Path file, BlockingQueue<Batch> out) {
        try {
            double[] hour = new double[ROWS], level = new double[ROWS];
            int n = 0;
            while (true) {
                try (BufferedReader in = Files.newBufferedReader(file)) {
                    for (String line; (line = in.readLine()) != null; ) {
                        String[] f = line.split(",");
                        hour[n] = LocalDateTime.parse(f[0]).toEpochSecond(ZoneOffset.UTC) / 3600.0;
                        // inverse barometer and wind set-up
                        level[n] = Double.parseDouble(f[2]) + (Double.parseDouble(f[3]) - 1013) * 0.01 - Double.parseDouble(f[4]) * 0.002;
                        if (++n == ROWS) {
                            out.put(new Batch(hour, level));
                            hour = new double[ROWS];
                            level = new double[ROWS];
                            n = 0;
                        }
                    }
                }
            }
        } catch (IOException | InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    /** One gradient step of the harmonic fit, on every eighth reading. */
    static double fit(double[] w, Batch b) {
        double[] g = new double[w.length], x = new double[w.length];
        double loss = 0;
        for (int i = 0; i < ROWS; i += 8) {
            x[0] = 1;
            for (int k = 0; k < PERIODS.length; k++) {
                double a = 2 * Math.PI * (b.hour()[i] / PERIODS[k] % 1.0);
                x[1 + 2 * k] = Math.sin(a);
                x[2 + 2 * k] = Math.cos(a);
            }
            double e = -b.level()[i];
            for (int k = 0; k < w.length; k++) e += w[k] * x[k];
            for (int k = 0; k < w.length; k++) g[k] += e * x[k];
            loss += e * e;
        }
        for (int k = 0; k < w.length; k++) w[k] -= 0.1 * g[k] * 8 / ROWS;
        return loss * 8 / ROWS;
    }

    public static void main(String[] args) throws Exception {
        double seconds = 6;
        int threads = 1;
        for (int i = 0; i < args.length; i++) {
            if (args[i].equals("--seconds")) seconds = Double.parseDouble(args[++i]);
            if (args[i].equals("--fix")) threads = 2;
        }
        Path file = log();
        BlockingQueue<Batch> queue = new ArrayBlockingQueue<>(8);
        for (int t = 0; t < threads; t++) {
            Thread thread = new Thread(() -> drain(file, queue), "gauge-in-" + t);
            thread.setDaemon(true);
            thread.start();
        }
        double[] w = new double[1 + 2 * PERIODS.length];
        double warm = Math.min(1.0, seconds / 5);
        long first = System.nanoTime(), since = 0, counted = 0;
        while (true) {
            fit(w, queue.take());
            long now = System.nanoTime();
            if (since == 0) {
                if ((now - first) / 1e9 >= warm) since = now;
            } else counted++;
            if ((now - first) / 1e9 >= seconds) {
                System.out.printf("rate %.3f batches/s%n", counted / Math.max((now - since) / 1e9, 1e-9));
                return;
            }
        }
    }
}
