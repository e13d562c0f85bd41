// Q-learning: a collector thread plays and puts its transitions in a queue, the main thread keeps them in a memory, draws batches and learns.
// --fix: an array in place of the memory's LinkedList, whose get(i) walks.
import java.util.LinkedList;
import java.util.Locale;
import java.util.Random;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;

public class Replay {
    static final int KEPT = 20_000, STATE = 24, BATCH = 64, FRESH = 4;

    record Transition(float[] state, float reward, float[] next) {}

    interface Memory {
        void add(Transition transition);

        Transition get(int index);
    }

    static class Listed implements Memory {
        final LinkedList<Transition> kept = new LinkedList<>();

        public void add(Transition transition) {
            kept.addLast(transition);
            if (kept.size() > KEPT) kept.removeFirst();
        }

        public Transition get(int index) {
            return kept.get(index);
        }
    }

    static class Ring implements Memory {
        final Transition[] kept = new Transition[KEPT];
        int at;

        public void add(Transition transition) {
            kept[at] = transition;
            at = (at + 1) % KEPT;
        }

        public Transition get(int index) {
            return kept[(at + index) % KEPT];
        }
    }

    static Transition play(Random random, float[] state) {
        float[] next = new float[STATE];
        for (int i = 0; i < STATE; i++) next[i] = 0.9f * state[i] + 0.1f * (float) random.nextGaussian();
        return new Transition(state, next[0] + next[1], next);
    }

    static void collect(BlockingQueue<Transition> fresh) {
        Random random = new Random(1);
        float[] state = new float[STATE];
        try {
            while (true) {
                Transition transition = play(random, state);
                fresh.put(transition);
                state = transition.next();
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    static float value(float[] weights, float[] state) {
        float sum = 0;
        for (int i = 0; i < STATE; i++) sum += weights[i] * state[i];
        return sum;
    }

    public static void main(String[] words) throws Exception {
        double seconds = 6;
        boolean fix = false;
        for (int i = 0; i < words.length; i++) {
            if (words[i].equals("--fix")) fix = true;
            if (words[i].equals("--seconds")) seconds = Double.parseDouble(words[++i]);
        }
        BlockingQueue<Transition> fresh = new ArrayBlockingQueue<>(256);
        Thread collector = new Thread(() -> collect(fresh), "collector");
        collector.setDaemon(true);
        collector.start();
        Memory memory = fix ? new Ring() : new Listed();
        for (int i = 0; i < KEPT; i++) memory.add(fresh.take());
        Random random = new Random(2);
        float[] weights = new float[STATE];
        long begin = System.nanoTime(), batches = 0;
        double passed = 0, loss = 0;
        while (passed < seconds) {
            for (int i = 0; i < FRESH; i++) memory.add(fresh.take());
            for (int k = 0; k < BATCH; k++) {
                Transition drawn = memory.get(random.nextInt(KEPT));
                float error = value(weights, drawn.state()) - drawn.reward() - 0.9f * value(weights, drawn.next());
                loss += error * error;
                for (int i = 0; i < STATE; i++) weights[i] -= 1e-3f * error * drawn.state()[i];
            }
            batches++;
            passed = (System.nanoTime() - begin) / 1e9;
        }
        System.err.printf(Locale.ROOT, "loss %g%n", loss / batches);
        System.out.printf(Locale.ROOT, "rate %.3f batches/s%n", batches / passed);
    }
}
