// Ticks of an exchange in a binary file: a reader thread makes windows of them with RandomAccessFile, the main thread fits a linear model.
// --fix: a mapped ByteBuffer in place of readInt and readFloat.
import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Locale;
import java.util.Random;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;

public class Ticks {
    static final int COUNT = 400_000, FIELDS = 6, WINDOW = 64, BATCH = 16;

    static Path write() throws IOException {
        Path path = Files.createTempFile("ticks", ".bin");
        path.toFile().deleteOnExit();
        Random random = new Random(1);
        java.nio.ByteBuffer bytes = java.nio.ByteBuffer.allocate(COUNT * FIELDS * 4);
        for (int i = 0; i < COUNT * FIELDS; i++) bytes.putFloat(random.nextFloat());
        Files.write(path, bytes.array());
        return path;
    }

    interface Source {
        void window(int first, float[] into, int at) throws IOException;
    }

    static Source plain(Path path) throws IOException {
        RandomAccessFile file = new RandomAccessFile(path.toFile(), "r");
        return (first, into, at) -> {
            file.seek((long) first * FIELDS * 4);
            for (int i = 0; i < WINDOW * FIELDS; i++) into[at + i] = file.readFloat();
        };
    }

    static Source mapped(Path path) throws IOException {
        try (FileChannel channel = FileChannel.open(path)) {
            MappedByteBuffer map = channel.map(FileChannel.MapMode.READ_ONLY, 0, channel.size());
            return (first, into, at) -> map.asFloatBuffer().get(first * FIELDS, into, at, WINDOW * FIELDS);
        }
    }

    static void read(Source source, BlockingQueue<float[]> ready) {
        Random random = new Random(2);
        try {
            while (true) {
                float[] batch = new float[BATCH * WINDOW * FIELDS];
                for (int k = 0; k < BATCH; k++) source.window(random.nextInt(COUNT - WINDOW), batch, k * WINDOW * FIELDS);
                ready.put(batch);
            }
        } catch (IOException | InterruptedException e) {
            throw new RuntimeException(e);
        }
    }

    static double step(float[] batch, float[] weights) {
        double loss = 0;
        int width = WINDOW * FIELDS - 1;
        for (int k = 0; k < BATCH; k++) {
            int at = k * (width + 1);
            float sum = 0;
            for (int i = 0; i < width; i++) sum += weights[i] * batch[at + i];
            float error = sum - batch[at + width];
            loss += error * error;
            for (int i = 0; i < width; i++) weights[i] -= 1e-4f * error * batch[at + i];
        }
        return loss / BATCH;
    }

    public static void main(String[] words) throws Exception {
        double seconds = 6;
        boolean fix = false;
        for (int i = 0; i < words.length; i++) {
            if (words[i].equals("--fix")) fix = true;
            if (words[i].equals("--seconds")) seconds = Double.parseDouble(words[++i]);
        }
        Path path = write();
        Source source = fix ? mapped(path) : plain(path);
        BlockingQueue<float[]> ready = new ArrayBlockingQueue<>(8);
        Thread reader = new Thread(() -> read(source, ready), "reader");
        reader.setDaemon(true);
        reader.start();
        float[] weights = new float[WINDOW * FIELDS - 1];
        long begin = System.nanoTime(), batches = 0;
        double loss = 0, passed = 0;
        while (passed < seconds) {
            loss = step(ready.take(), weights);
            batches++;
            passed = (System.nanoTime() - begin) / 1e9;
        }
        System.err.printf(Locale.ROOT, "loss %g%n", loss);
        System.out.printf(Locale.ROOT, "rate %.3f batches/s%n", batches / passed);
    }
}
