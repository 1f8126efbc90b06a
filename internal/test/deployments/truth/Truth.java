import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.nio.file.*;
import java.util.*;
import javax.management.*;

/**
 * A Java agent that writes down, twenty times a second, what Tomcat's own MBeans say
 * of each connector, and sets attributes that FILE.set asks for ("NAME ATTRIBUTE NUMBER").
 */
public class Truth implements Runnable {
    private static final String[] ATTRIBUTES = {
        "port", "localPort", "maxThreads", "currentThreadCount", "currentThreadsBusy",
        "connectionCount", "maxConnections", "acceptCount",
    };
    private final Path file;
    private final MBeanServer beans = ManagementFactory.getPlatformMBeanServer();

    private Truth(String file) {
        this.file = Paths.get(file);
    }

    public static void premain(String file) {
        Thread thread = new Thread(new Truth(file), "truth");
        thread.setDaemon(true);
        thread.start();
    }

    @Override
    public void run() {
        try {
            while (true) {
                set(file.resolveSibling(file.getFileName() + ".set"));
                Path next = file.resolveSibling(file.getFileName() + ".next");
                Files.write(next, read().getBytes(StandardCharsets.UTF_8));
                Files.move(next, file, StandardCopyOption.ATOMIC_MOVE);
                Thread.sleep(50);
            }
        } catch (IOException | JMException | InterruptedException e) {
            e.printStackTrace();
        }
    }

    private String read() throws MalformedObjectNameException {
        StringBuilder out = new StringBuilder("{\"unix_ms\":" + System.currentTimeMillis() + ",\"connectors\":[");
        String before = "";
        for (ObjectName name : beans.queryNames(new ObjectName("*:type=ThreadPool,*"), null)) {
            if (name.getKeyProperty("subType") != null) {
                continue;
            }
            out.append(before).append("{\"name\":").append(ObjectName.quote(name.getKeyProperty("name").replace("\"", "")));
            for (String attribute : ATTRIBUTES) {
                try {
                    out.append(",\"").append(attribute).append("\":").append(beans.getAttribute(name, attribute));
                } catch (JMException | RuntimeException e) {
                    continue; // this Tomcat has none, or not yet
                }
            }
            out.append("}");
            before = ",";
        }
        return out.append("]}").toString();
    }

    private void set(Path asked) throws IOException, JMException {
        if (!Files.exists(asked)) {
            return;
        }
        for (String line : Files.readAllLines(asked)) {
            String[] words = line.split(" ");
            for (ObjectName name : beans.queryNames(new ObjectName("*:type=ThreadPool,*"), null)) {
                if (name.getKeyProperty("name").contains(words[0])) {
                    beans.setAttribute(name, new Attribute(words[1], Integer.valueOf(words[2])));
                }
            }
        }
        Files.delete(asked);
    }
}
