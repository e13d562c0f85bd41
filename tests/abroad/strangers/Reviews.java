import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;

/** Reviews are tokenised on a thread of their own and scored on the main thread. --fix: a cheaper tokeniser. */
public class Reviews {
    private static final String[] WORDS = "good bad film plot actor scene slow fast long short great awful music light dark".split(" ");

    static String review(long n) {
        StringBuilder text = new StringBuilder();
        for (int k = 0; k < 300; k++) text.append(WORDS[(int) ((n * 31 + (long) k * k) % WORDS.length)]).append(k % 9 == 0 ? ", " : " ");
        return text.toString();
    }

    static Map<String, Integer> ngrams(String text, int longest) {
        Map<String, Integer> counts = new HashMap<>();
        for (int size = 1; size <= longest; size++)
            for (int at = 0; at + size <= text.length(); at++) counts.merge(text.substring(at, at + size), 1, Integer::sum);
        return counts;
    }

    static class Tokeniser implements Runnable {
        private final BlockingQueue<float[][]> out;
        private final int longest;

        Tokeniser(BlockingQueue<float[][]> out, int longest) {
            this.out = out;
            this.longest = longest;
        }

        @Override
        public void run() {
            try {
                for (long n = 0;; n += 8) {
                    float[][] batch = new float[8][512];
                    for (int row = 0; row < 8; row++)
                        for (Map.Entry<String, Integer> e : ngrams(review(n + row), longest).entrySet())
                            batch[row][Math.floorMod(e.getKey().hashCode(), 512)] += e.getValue();
                    out.put(batch);
                }
            } catch (InterruptedException stop) {
                Thread.currentThread().interrupt();
            }
        }
    }

    static double score(float[][] batch, double[][] weights) {
        double sum = 0;
        for (float[] row : batch)
            for (double[] w : weights) {
                double dot = 0;
                for (int k = 0; k < 512; k++) dot += row[k] * w[k];
                sum += Math.tanh(dot);
            }
        return sum;
    }

    public static void main(String[] args) throws Exception {
        double seconds = 6;
        boolean fix = false;
        for (int i = 0; i < args.length; i++) {
            if (args[i].equals("--fix")) fix = true;
            if (args[i].equals("--seconds")) seconds = Double.parseDouble(args[++i]);
        }
        double[][] weights = new double[200][512];
        for (int a = 0; a < 200; a++) for (int b = 0; b < 512; b++) weights[a][b] = Math.sin(a * b) / 100;
        BlockingQueue<float[][]> queue = new ArrayBlockingQueue<>(4);
        Thread tokeniser = new Thread(new Tokeniser(queue, fix ? 1 : 6), "tokeniser");
        tokeniser.setDaemon(true);
        tokeniser.start();
        long warm = System.nanoTime() + 1_000_000_000L;
        double total = 0;
        while (System.nanoTime() < warm) total += score(queue.take(), weights);
        long begin = System.nanoTime(), count = 0;
        double took = 0;
        while (took < seconds) {
            total += score(queue.take(), weights);
            count++;
            took = (System.nanoTime() - begin) / 1e9;
        }
        System.out.printf("rate %.3f batches/s%n", count / took);
        if (Double.isNaN(total)) System.out.println("odd");
        System.exit(0);
    }
}
