package waiting;

import java.io.IOException;
import java.io.InputStream;
import java.net.HttpURLConnection;
import java.net.Socket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.HashMap;
import java.util.Map;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.data.redis.core.StringRedisTemplate;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.bind.annotation.RestController;

/** What a thread of a server can wait for: a backend, a pool of connections to it, and neither. */
@RestController
class Handlers {
    private final ObjectProvider<Orders> orders;
    private final ObjectProvider<JdbcTemplate> jdbc;
    private final ObjectProvider<StringRedisTemplate> redis;
    private final HttpClient multiplexed = HttpClient.newBuilder().version(HttpClient.Version.HTTP_2).build();
    private final ThreadLocal<Map<String, Socket>> sockets = ThreadLocal.withInitial(HashMap::new);
    private final String backend;

    Handlers(ObjectProvider<Orders> orders, ObjectProvider<JdbcTemplate> jdbc, ObjectProvider<StringRedisTemplate> redis,
             @Value("${waiting.backend:}") String backend) {
        this.orders = orders;
        this.jdbc = jdbc;
        this.redis = redis;
        this.backend = backend;
    }

    @GetMapping("/hello")
    String hello() {
        return "hello\n";
    }

    /** Through Spring Data and the pool. */
    @GetMapping("/order")
    String order() {
        return orders.getObject().findById(1L).map(Order::item).orElse("none") + "\n";
    }

    /** The database takes that long. */
    @GetMapping("/query")
    String query(@RequestParam("ms") long ms) {
        jdbc.getObject().execute("select pg_sleep(" + ms / 1000.0 + ")");
        return "answered\n";
    }

    @GetMapping("/redis")
    String redis() {
        return redis.getObject().opsForValue().get("key") + "\n";
    }

    /** A connection of each thread's own to a backend that answers a line with a line. */
    @GetMapping("/socket")
    String socket(@RequestParam(name = "to", defaultValue = "") String to) throws IOException {
        String address = to.isEmpty() ? backend : to;
        Socket s = sockets.get().get(address);
        if (s == null || s.isClosed()) {
            int colon = address.lastIndexOf(':');
            s = new Socket(address.substring(0, colon), Integer.parseInt(address.substring(colon + 1)));
            sockets.get().put(address, s);
        }
        try {
            s.getOutputStream().write('\n');
            InputStream in = s.getInputStream();
            for (int c = in.read(); c != '\n'; c = in.read()) {
                if (c < 0) {
                    throw new IOException("the backend closed the connection");
                }
            }
        } catch (IOException e) {
            s.close();
            throw e;
        }
        return "answered\n";
    }

    /** A read with a timeout, as most HTTP clients are configured. */
    @GetMapping("/http")
    String http(@RequestParam("url") String url) throws IOException {
        HttpURLConnection c = (HttpURLConnection) URI.create(url).toURL().openConnection();
        c.setConnectTimeout(60_000);
        c.setReadTimeout(120_000);
        try (InputStream in = c.getInputStream()) {
            return new String(in.readAllBytes());
        }
    }

    @GetMapping("/http2")
    String http2(@RequestParam("url") String url) throws IOException, InterruptedException {
        return multiplexed.send(HttpRequest.newBuilder(URI.create(url)).build(), HttpResponse.BodyHandlers.ofString()).body();
    }

    @GetMapping("/lock")
    String lock(@RequestParam("ms") long ms) throws InterruptedException {
        synchronized (this) {
            Thread.sleep(ms);
        }
        return "locked\n";
    }

    @GetMapping("/sleep")
    String sleep(@RequestParam("ms") long ms) throws InterruptedException {
        Thread.sleep(ms);
        return "slept\n";
    }

    @GetMapping("/burn")
    String burn(@RequestParam("ms") long ms) {
        long until = System.nanoTime() + ms * 1_000_000;
        long n = 0;
        while (System.nanoTime() < until) {
            n++;
        }
        return n + "\n";
    }
}
