import jakarta.servlet.AsyncContext;
import jakarta.servlet.http.HttpServletRequest;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.channels.SocketChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.security.SecureRandom;
import java.util.ArrayDeque;
import java.util.Queue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Work that a handler leaves to somebody else and waits for: "common" milliseconds of a task
 * of ForkJoinPool.commonPool, "program" a shell's command whose output it reads, "flock" a file to be
 * locked, "unix" a byte of whoever listens on that Unix socket, "seed" a byte of entropy, "shared" a line on the one connection to a port, answered in order, "log" a line of 8 MiB on the one connection to a port, "permit" milliseconds with one of three permits,
 * "elsewhere" a connection to a port, which another thread opens, "embrace" the second of two locks, which the next request takes first.
 */
final class Hands {
    private static final ExecutorService eight = Executors.newFixedThreadPool(8);
    private static final Queue<CompletableFuture<String>> asked = new ArrayDeque<>();
    private static final Semaphore permits = new Semaphore(3);
    private static Socket shared;
    private static Socket log;
    private static final Object left = new Object();
    private static final Object right = new Object();
    private static final AtomicInteger turn = new AtomicInteger();
    private static Thread dialer;

    private Hands() {
    }

    /** Answers after so many milliseconds of one of eight threads, as an asynchronous controller does. */
    static void later(AsyncContext context, long ms) {
        context.setTimeout(0);
        eight.execute(() -> {
            try {
                Thread.sleep(ms);
                context.getResponse().getWriter().println("later");
                context.complete();
            } catch (IOException | InterruptedException e) {
                throw new IllegalStateException(e);
            }
        });
    }

    static void waitFor(HttpServletRequest request) throws IOException {
        if (request.getParameter("common") != null) {
            long ms = Long.parseLong(request.getParameter("common"));
            CompletableFuture.runAsync(() -> sleep(ms)).join();
        }
        if (request.getParameter("program") != null) {
            new ProcessBuilder("sh", "-c", request.getParameter("program")).start().getInputStream().read();
        }
        if (request.getParameter("flock") != null) {
            lock(Path.of(request.getParameter("flock")));
        }
        if (request.getParameter("unix") != null) {
            try (var peer = SocketChannel.open(UnixDomainSocketAddress.of(request.getParameter("unix")))) {
                peer.read(ByteBuffer.allocate(1));
            }
        }
        if (request.getParameter("seed") != null) {
            new SecureRandom().generateSeed(1);
        }
        if (request.getParameter("shared") != null) {
            ask(Integer.parseInt(request.getParameter("shared")), request.getParameter("hold")).join();
        }
        if (request.getParameter("log") != null) {
            log(Integer.parseInt(request.getParameter("log")));
        }
        if (request.getParameter("elsewhere") != null) {
            dial(Integer.parseInt(request.getParameter("elsewhere"))).join();
        }
        if (request.getParameter("embrace") != null) {
            embrace(turn.incrementAndGet() % 2 == 0);
        }
        if (request.getParameter("permit") != null) {
            permits.acquireUninterruptibly();
            sleep(Long.parseLong(request.getParameter("permit")));
            permits.release();
        }
    }

    /** As a client library with threads of its own: they ask for a connection, the request waits for it. */
    private static synchronized CompletableFuture<String> dial(int port) {
        CompletableFuture<String> ready = new CompletableFuture<>();
        if (dialer == null) {
            dialer = new Thread(() -> {
                while (true) {
                    try (Socket socket = new Socket()) {
                        socket.connect(new InetSocketAddress("127.0.0.1", port), 1000);
                    } catch (IOException e) {
                        sleep(50);
                    }
                }
            }, "client-network-thread");
            dialer.setDaemon(true);
            dialer.start();
        }
        return ready;
    }

    private static void embrace(boolean first) {
        synchronized (first ? left : right) {
            sleep(500);
            synchronized (first ? right : left) {
                sleep(1);
            }
        }
    }

    /** One at a time: within a JVM a second lock of a file is an exception. */
    private static synchronized void lock(Path path) throws IOException {
        try (var file = FileChannel.open(path, StandardOpenOption.WRITE)) {
            file.lock();
        }
    }

    private static void sleep(long ms) {
        try {
            Thread.sleep(ms);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    private static synchronized CompletableFuture<String> ask(int port, String hold) throws IOException {
        if (shared == null) {
            shared = new Socket("127.0.0.1", port);
            Thread reader = new Thread(Hands::read, "shared-reader");
            reader.setDaemon(true);
            reader.start();
        }
        CompletableFuture<String> answer = new CompletableFuture<>();
        synchronized (asked) {
            asked.add(answer);
        }
        shared.getOutputStream().write((hold + "\n").getBytes());
        return answer;
    }

    /** As an appender that writes to its server: one at a time, until all of it is written. */
    private static void log(int port) throws IOException {
        synchronized (permits) {
            if (log == null) {
                log = new Socket("127.0.0.1", port);
            }
            byte[] line = new byte[8 << 20];
            log.getOutputStream().write(line);
        }
    }

    private static void read() {
        try {
            BufferedReader lines = new BufferedReader(new InputStreamReader(shared.getInputStream()));
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                synchronized (asked) {
                    asked.remove().complete(line);
                }
            }
        } catch (IOException e) {
            throw new IllegalStateException(e);
        }
    }
}
