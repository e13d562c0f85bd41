import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Random;

/** Learns which pay slips are wrong, and keeps an audit trail of what it has seen, as the auditors ask. */
public class Payroll {
    static final int FIELDS = 12;
    static final int BATCH = 64;

    record Slips(long[] numbers, double[][] pay, double[] wrong) {}

    /** The audit trail: the numbers of the slips and the loss of every batch. */
    static class AuditTrail implements AutoCloseable {
        private final FileChannel channel;
        private final int every;
        private int entries;

        AuditTrail(Path file, int every) throws IOException {
            channel = FileChannel.open(file, StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE);
            this.every = every;
        }

        void enter(Slips slips, double loss) throws IOException {
            ByteBuffer entry = ByteBuffer.allocate(8 * BATCH + 8);
            for (long number : slips.numbers()) {
                entry.putLong(number);
            }
            channel.write(entry.putDouble(loss).flip());
            if (++entries % every == 0) {
                channel.force(true);
            }
        }

        @Override
        public void close() throws IOException {
            channel.close();
        }
    }

    static class Model {
        final double[] weights = new double[FIELDS];

        double learn(Slips slips) {
            double loss = 0;
            for (int i = 0; i < BATCH; i++) {
                double[] pay = slips.pay()[i];
                double sum = 0;
                for (int f = 0; f < FIELDS; f++) {
                    sum += weights[f] * pay[f];
                }
                double miss = 1 / (1 + Math.exp(-sum)) - slips.wrong()[i];
                loss += miss * miss / BATCH;
                for (int f = 0; f < FIELDS; f++) {
                    weights[f] -= 0.05 * miss * pay[f];
                }
            }
            return loss;
        }
    }

    static Slips draw(Random random) {
        Slips slips = new Slips(new long[BATCH], new double[BATCH][FIELDS], new double[BATCH]);
        for (int i = 0; i < BATCH; i++) {
            slips.numbers()[i] = random.nextLong() >>> 24;
            for (int f = 0; f < FIELDS; f++) {
                slips.pay()[i][f] = random.nextDouble() - 0.5;
            }
            slips.wrong()[i] = slips.pay()[i][0] + slips.pay()[i][1] > 0.3 ? 1 : 0;
        }
        return slips;
    }

    public static void main(String[] args) throws IOException {
        double seconds = 6;
        boolean fix = false;
        for (int i = 0; i < args.length; i++) {
            if (args[i].equals("--fix")) {
                fix = true;
            } else if (args[i].equals("--seconds")) {
                seconds = Double.parseDouble(args[++i]);
            }
        }
        Path folder = Files.createTempDirectory("payroll");
        Path file = folder.resolve("audit.bin");
        Random random = new Random(6);
        Model model = new Model();
        long counted = 0;
        try (AuditTrail trail = new AuditTrail(file, fix ? 200 : 1)) {
            long start = System.nanoTime();
            for (double elapsed = 0; elapsed < seconds; elapsed = (System.nanoTime() - start) / 1e9) {
                Slips slips = draw(random);
                trail.enter(slips, model.learn(slips));
                if (elapsed >= 1) {
                    counted++;
                }
            }
        }
        Files.delete(file);
        Files.delete(folder);
        System.out.printf("rate %.3f batches/s%n", counted / (seconds - 1));
    }
}
