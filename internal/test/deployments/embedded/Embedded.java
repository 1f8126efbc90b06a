import java.io.File;
import java.util.concurrent.PriorityBlockingQueue;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.catalina.connector.Connector;
import org.apache.catalina.startup.Tomcat;
import org.apache.coyote.AbstractProtocol;
import org.apache.tomcat.util.net.AbstractEndpoint;
import org.apache.tomcat.util.net.SSLHostConfig;
import org.apache.tomcat.util.net.SSLHostConfigCertificate;
import org.apache.tomcat.websocket.server.WsSci;

/**
 * A Tomcat in somebody's own program. Arguments: "protocol=CLASS" begins a connector,
 * "executor=N" gives it an executor of N threads and a priority queue, "callers=N" one of N threads
 * that hands what is too much back to the thread that brings it, anything else
 * is an attribute of it. "pause=MS" pauses the last one so many milliseconds after the start,
 * "deploy=MS" has the application take so long to start, "kill=NAME" ends the threads whose names end so two seconds after it, as an Error does,
 * "taken=N" has it count so many connections that are not there.
 */
public class Embedded {
    public static void main(String[] args) throws Exception {
        Tomcat tomcat = new Tomcat();
        File base = new File(System.getProperty("java.io.tmpdir"), "base");
        tomcat.setBaseDir(base.getPath());
        var context = tomcat.addContext("", null);
        Tomcat.addServlet(context, "hello", new Work()).setAsyncSupported(true);
        context.addServletMappingDecoded("/", "hello");
        context.addServletContainerInitializer(new WsSci(), null);
        context.addApplicationListener(Echo.Start.class.getName());
        Connector connector = null;
        long pause = -1;
        String kill = null;
        int taken = 0;
        for (String arg : args) {
            String[] pair = arg.split("=", 2);
            switch (pair[0]) {
                case "protocol" -> {
                    connector = new Connector(pair[1]);
                    tomcat.setConnector(connector);
                }
                case "executor" -> ((AbstractProtocol<?>) connector.getProtocolHandler()).setExecutor(priority(Integer.parseInt(pair[1])));
                case "callers" -> ((AbstractProtocol<?>) connector.getProtocolHandler()).setExecutor(callers(Integer.parseInt(pair[1])));
                case "pause" -> pause = Long.parseLong(pair[1]);
                case "deploy" -> {
                    long ms = Long.parseLong(pair[1]);
                    context.addServletContainerInitializer((classes, deployed) -> sleep(ms), null);
                }
                case "kill" -> kill = pair[1];
                case "taken" -> taken = Integer.parseInt(pair[1]);
                case "keystore" -> connector.addSslHostConfig(host(pair[1]));
                default -> connector.setProperty(pair[0], pair[1]);
            }
        }
        tomcat.start();
        for (int i = 0; i < taken; i++) {
            count(connector);
        }
        if (pause >= 0) {
            Thread.sleep(pause);
            connector.pause();
            new File(System.getProperty("java.io.tmpdir"), "paused").createNewFile();
        }
        if (kill != null) {
            Thread.sleep(2000);
            for (Thread thread : Thread.getAllStackTraces().keySet()) {
                if (thread.getName().endsWith(kill)) {
                    thread.stop();
                }
            }
        }
        tomcat.getServer().await();
    }

    private static void count(Connector connector) throws ReflectiveOperationException {
        var endpoint = AbstractProtocol.class.getDeclaredMethod("getEndpoint");
        var count = AbstractEndpoint.class.getDeclaredMethod("countUpOrAwaitConnection");
        endpoint.setAccessible(true);
        count.setAccessible(true);
        count.invoke(endpoint.invoke(connector.getProtocolHandler()));
    }

    private static void sleep(long ms) {
        try {
            Thread.sleep(ms);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    private static SSLHostConfig host(String keystore) {
        SSLHostConfig host = new SSLHostConfig();
        SSLHostConfigCertificate certificate = new SSLHostConfigCertificate(host, SSLHostConfigCertificate.Type.UNDEFINED);
        certificate.setCertificateKeystoreFile(keystore);
        certificate.setCertificateKeystorePassword("changeit");
        host.addCertificate(certificate);
        return host;
    }

    private static ThreadPoolExecutor callers(int threads) {
        AtomicInteger n = new AtomicInteger();
        return new ThreadPoolExecutor(threads, threads, 1, TimeUnit.MINUTES, new SynchronousQueue<>(),
                task -> new Thread(task, "http-nio-8080-exec-" + n.incrementAndGet()), new ThreadPoolExecutor.CallerRunsPolicy());
    }

    /** In no order that a request could know of; a Runnable is no Comparable. */
    private static ThreadPoolExecutor priority(int threads) {
        AtomicInteger n = new AtomicInteger();
        return new ThreadPoolExecutor(threads, threads, 1, TimeUnit.MINUTES,
                new PriorityBlockingQueue<>(11, (a, b) -> Integer.compare(System.identityHashCode(a), System.identityHashCode(b))),
                task -> new Thread(task, "orders-" + n.incrementAndGet()));
    }
}
