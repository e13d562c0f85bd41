// Threads that make batches and one that takes them, in a JVM. Each batch waits 20 ms for a store; the fix is eight threads
// instead of two.
import java.util.concurrent.ArrayBlockingQueue;

public class Loader {
    static long burn(double milliseconds) {
        long end = System.nanoTime() + (long) (milliseconds * 1e6), x = 1;
        while (System.nanoTime() < end) x = x * 6364136223846793005L + 1;
        return x;
    }

    public static void main(String[] arguments) throws Exception {
        boolean fixed = false;
        double seconds = 8;
        for (int i = 0; i < arguments.length; i++) {
            if (arguments[i].equals("--fix")) fixed = true;
            if (arguments[i].equals("--seconds")) seconds = Double.parseDouble(arguments[++i]);
        }
        ArrayBlockingQueue<long[]> queue = new ArrayBlockingQueue<>(8);
        for (int i = 0; i < (fixed ? 8 : 2); i++) {
            Thread reader = new Thread(() -> {
                try {
                    while (true) {
                        Thread.sleep(20);
                        queue.put(new long[] {burn(0.5)});
                    }
                } catch (InterruptedException e) {
                    return;
                }
            }, "reader-" + i);
            reader.setDaemon(true);
            reader.start();
        }
        long begin = System.nanoTime(), count = 0, waited = 0;
        while (System.nanoTime() - begin < seconds * 1e9) {
            long asked = System.nanoTime();
            queue.take();
            waited += System.nanoTime() - asked;
            burn(1);
            count++;
        }
        double took = (System.nanoTime() - begin) / 1e9;
        System.out.printf("rate %.3f batches/s, waited %.1f %%%n", count / took, 100 * waited / 1e9 / took);
    }
}
