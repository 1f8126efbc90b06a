package draws;

import java.io.FileInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.util.Map;
import java.util.Timer;
import java.util.TimerTask;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.locks.ReentrantLock;

/**
 * What a handler does, for every server: plain Java 8 and no Servlet API, so that it
 * runs behind a Spring controller and behind a JSP of any Tomcat.
 */
public final class Work {
    private static final Object LOCK = new Object();
    private static final ReentrantLock HELD = new ReentrantLock();
    private static final Timer LATER = new Timer(true);
    private static BlockingQueue<Socket> pool;
    private static volatile Object[] hoarded;

    private Work() {}

    /** Takes ten minutes to initialize; a virtual thread that does, or waits for it, keeps its carrier. */
    private static final class Initialized {
        static long ms;

        static {
            try {
                Thread.sleep(600000);
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
        }
    }

    /** A piece of the answer. */
    public interface Sink {
        void send() throws IOException;
    }

    /** "op" says what, "ms" for how long. */
    public static void run(Map<String, String> asked, InputStream body, Sink out) throws Exception {
        String op = asked.containsKey("op") ? asked.get("op") : "hello";
        long ms = number(asked, "ms");
        switch (op) {
            case "sleep":
                Thread.sleep(ms);
                break;
            case "lock":
                synchronized (LOCK) {
                    Thread.sleep(ms);
                }
                break;
            case "hold":
                HELD.lock();
                try {
                    Thread.sleep(ms);
                } finally {
                    HELD.unlock();
                }
                break;
            case "init":
                Initialized.ms = ms; // by the first of them, and the others wait for it
                break;
            case "pool":
                pooled((int) number(asked, "size"), (int) number(asked, "to"), ms);
                break;
            case "peer":
                try (Socket socket = connected((int) number(asked, "to"))) {
                    ask(socket, ms);
                }
                break;
            case "file":
                new FileInputStream(asked.get("file")).close();
                break;
            case "gc":
                collect((int) number(asked, "log2"));
                break;
            case "burn":
                burn(ms);
                break;
            case "stream":
                for (long left = ms; left > 0; left -= 100) {
                    out.send();
                    Thread.sleep(100);
                }
                break;
            case "upload":
                byte[] buffer = new byte[1 << 14];
                while (body.read(buffer) >= 0) {
                    Thread.yield();
                }
                break;
            case "die":
                die(asked.get("thread"));
                break;
            default:
                break;
        }
        out.send();
    }

    /** Ends an asynchronous request later; of javax.servlet or jakarta.servlet. */
    public static void later(final Object async, long ms) {
        LATER.schedule(new TimerTask() {
            @Override
            public void run() {
                try {
                    async.getClass().getMethod("complete").invoke(async);
                } catch (ReflectiveOperationException | IllegalStateException e) {
                    e.printStackTrace(); // its client has gone
                }
            }
        }, ms);
    }

    private static long number(Map<String, String> asked, String name) {
        return asked.containsKey(name) ? Long.parseLong(asked.get(name)) : 0;
    }

    private static void pooled(int size, int to, long ms) throws Exception {
        synchronized (Work.class) {
            if (pool == null) {
                pool = new ArrayBlockingQueue<Socket>(size);
                for (int i = 0; i < size; i++) {
                    pool.add(connected(to));
                }
            }
        }
        Socket socket = pool.take();
        try {
            ask(socket, ms);
        } finally {
            pool.add(socket);
        }
    }

    private static Socket connected(int to) throws IOException {
        Socket socket = new Socket();
        socket.connect(new InetSocketAddress("127.0.0.1", to));
        return socket;
    }

    private static void ask(Socket socket, long ms) throws IOException {
        socket.getOutputStream().write((ms + "\n").getBytes());
        if (socket.getInputStream().read() != '\n') {
            throw new IOException("the backend closed");
        }
    }

    private static void burn(long ms) {
        ThreadMXBean threads = ManagementFactory.getThreadMXBean();
        long end = threads.getCurrentThreadCpuTime() + ms * 1_000_000;
        double x = 1;
        while (threads.getCurrentThreadCpuTime() < end) {
            for (int i = 0; i < 10_000; i++) {
                x = Math.sqrt(x + i);
            }
        }
        if (x < 0) {
            throw new IllegalStateException();
        }
    }

    private static synchronized void collect(int log2) {
        if (hoarded == null) {
            Object[] objects = new Object[1 << log2];
            for (int i = 0; i < objects.length; i++) {
                objects[i] = new Object[1];
            }
            hoarded = objects;
        }
        System.gc();
    }

    /** Ends a thread of the connector, as an error that nobody caught would (until Java 19). */
    @SuppressWarnings({"deprecation", "removal"})
    private static void die(String name) {
        for (Thread thread : Thread.getAllStackTraces().keySet()) {
            if (thread.getName().endsWith("-" + name)) {
                thread.stop();
            }
        }
    }
}
