package io.github.tcpdiag.sample;

import java.io.IOException;
import java.io.InputStream;
import java.net.HttpURLConnection;
import java.net.URI;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.bind.annotation.RestController;

/** Handlers that use up what is not Tomcat's own: a CPU, files, outgoing ports, memory. */
@RestController
class Costly {
    private final int port;

    Costly(@Value("${server.port}") int port) {
        this.port = port;
    }

    /** Computes for so long on a CPU; waiting for one does not count. */
    @GetMapping("/burn")
    String burn(@RequestParam(name = "ms") long ms) {
        long x = 1;
        for (long rounds = ms * ROUNDS_PER_MILLI; rounds > 0; rounds--) {
            x ^= x << 13;
            x ^= x >>> 7;
            x ^= x << 17;
        }
        return x + "\n";
    }

    /** About a nanosecond each. */
    private static final long ROUNDS_PER_MILLI = 1_000_000;

    /**
     * Calls itself until the depth is reached and then waits: each call holds
     * both ends of a connection and a thread in this one process.
     */
    @GetMapping("/nested")
    String nested(@RequestParam(name = "depth") int depth, @RequestParam(name = "ms") long ms)
            throws IOException, InterruptedException {
        if (depth <= 0) {
            Thread.sleep(ms);
            return "0\n";
        }
        URI next = URI.create("http://127.0.0.1:" + port + "/nested?depth=" + (depth - 1) + "&ms=" + ms);
        HttpURLConnection call = (HttpURLConnection) next.toURL().openConnection();
        call.setRequestProperty("Connection", "close");
        try (InputStream answer = call.getInputStream()) {
            return new String(answer.readAllBytes()).trim() + "+1\n";
        }
    }

    private long[][] hoard;

    /** Keeps 2^log2 small objects, scattered, so that a collector has to fetch each from memory. */
    @GetMapping("/hoard")
    synchronized String hoard(@RequestParam(name = "log2") int log2) {
        int objects = 1 << log2;
        hoard = new long[objects][];
        for (int i = 0; i < objects; i++) {
            hoard[i * SCATTER & objects - 1] = new long[2];
        }
        return objects + "\n";
    }

    /** Odd, so that every index comes up once. */
    private static final int SCATTER = 0x9E3779B1;

    /** Collects garbage: with -XX:+UseSerialGC and much in the hoard everything stands still for seconds. */
    @GetMapping("/collect")
    String collect() {
        System.gc();
        return "collected\n";
    }
}
