import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Random;

/** Learns which pages of scanned books are poems, from the words that are on them. */
public class BookPages {
    static final int WORDS = 20_000;
    static final int PAGES = 60_000;
    static final int BATCH = 256;

    record Page(String book, int number, List<Integer> words, boolean poem) {}

    /** All pages, by the book and the number. */
    static class Library {
        private final Map<String, Page> pages = new HashMap<>();
        private final List<String> keys = new ArrayList<>();
        private final Random random = new Random(5);

        Library() {
            for (int n = 0; n < PAGES; n++) {
                boolean poem = random.nextBoolean();
                List<Integer> words = new ArrayList<>();
                for (int w = 0; w < (poem ? 20 : 40); w++) {
                    words.add(random.nextInt(poem ? WORDS / 2 : WORDS));
                }
                String key = "book" + n / 200 + "/" + n % 200;
                pages.put(key, new Page("book" + n / 200, n % 200, words, poem));
                keys.add(key);
            }
        }

        List<Page> draw(int count) {
            List<Page> drawn = new ArrayList<>();
            for (int i = 0; i < count; i++) {
                drawn.add(pages.get(keys.get(random.nextInt(keys.size()))));
            }
            return drawn;
        }
    }

    static class Classifier {
        private final double[] weights = new double[WORDS];
        private double bias;

        double step(List<Page> batch) {
            double loss = 0;
            for (Page page : batch) {
                double sum = bias;
                for (int word : page.words()) {
                    sum += weights[word];
                }
                double guess = 1 / (1 + Math.exp(-sum));
                double miss = guess - (page.poem() ? 1 : 0);
                for (int word : page.words()) {
                    weights[word] -= 0.05 * miss;
                }
                bias -= 0.05 * miss;
                loss += Math.abs(miss);
            }
            return loss / batch.size();
        }
    }

    static class Trainer {
        private final Library library = new Library();
        private final Classifier classifier = new Classifier();
        private final boolean tidy;
        private double loss = 0.5;

        Trainer(boolean tidy) {
            this.tidy = tidy;
        }

        void batch() {
            List<Page> pages = library.draw(BATCH);
            loss = 0.9 * loss + 0.1 * classifier.step(pages);
            if (tidy) {
                System.gc(); // the server is small: don't let what was drawn pile up
            }
        }
    }

    public static void main(String[] args) {
        double seconds = 6;
        boolean fix = false;
        for (int i = 0; i < args.length; i++) {
            if (args[i].equals("--fix")) {
                fix = true;
            } else if (args[i].equals("--seconds")) {
                seconds = Double.parseDouble(args[++i]);
            }
        }
        Trainer trainer = new Trainer(!fix);
        double warm = Math.min(1, seconds / 5);
        long start = System.nanoTime();
        double now = 0;
        double since = -1;
        long done = 0;
        long skipped = 0;
        while (now < seconds) {
            trainer.batch();
            done++;
            now = (System.nanoTime() - start) / 1e9;
            if (since < 0 && now >= warm) {
                since = now;
                skipped = done;
            }
        }
        System.out.printf(Locale.ROOT, "rate %.3f batches/s%n", (done - skipped) / (now - since));
    }
}
