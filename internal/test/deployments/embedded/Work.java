import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.FileInputStream;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.Semaphore;

/**
 * What a request asks for: "async" never to be answered, without a thread, "flush" the header of the response to be sent first, "open" a file to be opened, "ms" to wait, "lock" to wait with the one lock, "lookup" the client's name, "burn" milliseconds of CPU time, "hoard" 2^N objects
 * that stay, "keep" KiB that stay, "litter" KiB that do not, "print" characters to the standard output, "collect" them, "count" millions of rounds in one loop, "answer" KiB more in the response, what Hands does, "to" another port (of "host"): a request there, whose answer
 * takes "hold" and is given up after "timeout" milliseconds; with "pool" the connection is
 * used again, with "three" after a wait for one of three.
 */
class Work extends HttpServlet {
    private static final ConcurrentLinkedQueue<Socket> pool = new ConcurrentLinkedQueue<>();
    private static volatile Object[] hoarded;
    private static final ConcurrentLinkedQueue<byte[]> kept = new ConcurrentLinkedQueue<>();
    private static volatile byte[] last;
    private static volatile long counted;
    private static final Semaphore slots = new Semaphore(3, true);

    @Override
    protected void doGet(HttpServletRequest request, HttpServletResponse response) throws IOException {
        if (request.getParameter("async") != null) {
            request.startAsync().setTimeout(0);
            return;
        }
        if (request.getParameter("task") != null) {
            Hands.later(request.startAsync(), number(request, "task"));
            return;
        }
        if (request.getParameter("flush") != null) {
            response.flushBuffer();
        }
        Hands.waitFor(request);
        if (request.getParameter("open") != null) {
            new FileInputStream(request.getParameter("open")).close();
        }
        try {
            Thread.sleep(number(request, "ms"));
        } catch (InterruptedException e) {
            throw new IOException(e);
        }
        if (request.getParameter("lock") != null) {
            locked(number(request, "lock"));
        }
        if (request.getParameter("lookup") != null) {
            request.getRemoteHost();
        }
        burn(number(request, "burn"));
        if (request.getParameter("print") != null) {
            System.out.println("x".repeat((int) number(request, "print")));
        }
        keep(number(request, "keep"));
        litter(number(request, "litter"));
        hoard((int) number(request, "hoard"));
        if (request.getParameter("collect") != null) {
            System.gc();
        }
        count((int) number(request, "count"));
        if (request.getParameter("to") != null) {
            boolean three = request.getParameter("three") != null;
            try {
                if (three) {
                    slots.acquireUninterruptibly();
                }
                ask(request);
                if (three) {
                    slots.release();
                }
            } catch (IOException e) {
                response.sendError(HttpServletResponse.SC_BAD_GATEWAY);
                return;
            }
        }
        answer(response, number(request, "answer"));
        response.getWriter().println("hello");
    }

    private static void answer(HttpServletResponse response, long kib) throws IOException {
        String text = "x".repeat(1 << 10);
        for (long i = 0; i < kib; i++) {
            response.getWriter().print(text);
        }
    }

    private static long number(HttpServletRequest request, String name) {
        String value = request.getParameter(name);
        return value == null ? 0 : Long.parseLong(value);
    }

    private static synchronized void locked(long ms) throws IOException {
        try {
            Thread.sleep(ms);
        } catch (InterruptedException e) {
            throw new IOException(e);
        }
    }

    /** So many KiB stay. */
    private static void keep(long kib) {
        for (long i = 0; i < kib; i++) {
            kept.add(new byte[1000]);
        }
    }

    /** So many KiB are garbage at once. */
    private static void litter(long kib) {
        for (long i = 0; i < kib; i++) {
            last = new byte[1000];
        }
    }

    private static void burn(long ms) {
        var threads = ManagementFactory.getThreadMXBean();
        long now = threads.getCurrentThreadCpuTime();
        if (now < 0) { // a virtual thread has no CPU time of its own: about a nanosecond a round
            long x = 1;
            for (long rounds = ms * 1_000_000; rounds > 0; rounds--) {
                x ^= x << 13;
                x ^= x >>> 7;
                x ^= x << 17;
            }
            Math.sqrt(x);
            return;
        }
        long end = now + ms * 1_000_000;
        while (ms > 0 && threads.getCurrentThreadCpuTime() < end) {
            Math.sqrt(end);
        }
    }

    /** A loop in which the compiler leaves out what would stop for a safepoint, where it is told to. */
    private static void count(int millions) {
        long x = 1;
        int rounds = millions * 1_000_000;
        for (int i = 0; i < rounds; i++) {
            x ^= x << 13;
            x ^= x >>> 7;
            x ^= x << 17;
        }
        Math.sqrt(x);
        counted = x;
    }

    private static void hoard(int log2) {
        if (log2 == 0) {
            return;
        }
        Object[] objects = new Object[1 << log2];
        for (int i = 0; i < objects.length; i++) {
            objects[i] = new Object();
        }
        hoarded = objects;
    }

    private static void ask(HttpServletRequest request) throws IOException {
        boolean again = request.getParameter("pool") != null;
        Socket socket = again ? pool.poll() : null;
        if (socket == null) {
            socket = new Socket();
            String host = request.getParameter("host");
            socket.connect(new InetSocketAddress(host == null ? "127.0.0.1" : host, (int) number(request, "to")));
        }
        boolean whole = false;
        try {
            socket.setSoTimeout((int) number(request, "timeout"));
            socket.getOutputStream().write((number(request, "hold") + "\n").getBytes());
            whole = socket.getInputStream().read() == '\n';
        } finally {
            if (whole && again) {
                pool.add(socket);
            } else {
                socket.close();
            }
        }
        if (!whole) {
            throw new IOException("the backend closed");
        }
    }
}
