import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;

/** Threads with the names of a Tomcat's workers: N that wait for a lock, two that wait for work. */
public class Waiting {
    static final Object lock = new Object();

    static void find() throws InterruptedException {
        synchronized (lock) {
            Thread.sleep(Long.MAX_VALUE);
        }
    }

    static void deep(int depth) throws InterruptedException {
        if (depth > 0) {
            deep(depth - 1);
        } else {
            find();
        }
    }

    /** Keeps a thread in Java code, which all others wait for at a safepoint. */
    static long compute(int[] data) {
        long sum = 0;
        for (int i = 0; i < Integer.MAX_VALUE; i++) {
            sum += data[i & 1023] * (long) i;
        }
        return sum;
    }

    public static void main(String[] args) throws Exception {
        int threads = Integer.parseInt(args[0]);
        int depth = Integer.parseInt(args[1]);
        for (int i = 1; i <= threads; i++) {
            Thread t = new Thread(() -> {
                try {
                    deep(depth);
                } catch (InterruptedException e) {
                    Thread.currentThread().interrupt();
                }
            }, "http-nio-8080-exec-" + i);
            t.setDaemon(true);
            t.start();
        }
        CountDownLatch begun = new CountDownLatch(2);
        ThreadPoolExecutor idle = new ThreadPoolExecutor(2, 2, 1, TimeUnit.HOURS, new LinkedBlockingQueue<>(), r -> {
            Thread t = new Thread(r, "http-nio-8080-exec-" + (threads + begun.getCount()));
            t.setDaemon(true);
            return t;
        });
        idle.submit(begun::countDown);
        idle.submit(begun::countDown);
        begun.await();
        System.out.println("up");
        if (args.length > 2) {
            int[] data = new int[1024];
            for (long sum = 0; ; sum += compute(data)) {
                if (sum == 42) {
                    System.out.println("never");
                }
            }
        }
        System.in.read(); // until the one that started it ends
    }
}
