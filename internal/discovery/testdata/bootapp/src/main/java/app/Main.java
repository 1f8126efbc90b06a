package app;

import java.lang.management.ManagementFactory;
import javax.management.MBeanAttributeInfo;
import javax.management.MBeanServer;
import javax.management.ObjectName;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;

/** Answers /limits with what Tomcat's own MBeans say: one "bean attribute=value" a line. */
@SpringBootApplication
@RestController
public class Main {
    public static void main(String[] args) {
        SpringApplication.run(Main.class, args);
    }

    @GetMapping(value = "/limits", produces = "text/plain")
    public String limits() throws Exception {
        StringBuilder out = new StringBuilder();
        MBeanServer beans = ManagementFactory.getPlatformMBeanServer();
        for (String type : new String[] {"ThreadPool", "Executor", "ProtocolHandler"}) {
            for (ObjectName name : beans.queryNames(new ObjectName("*:type=" + type + ",*"), null)) {
                for (MBeanAttributeInfo info : beans.getMBeanInfo(name).getAttributes()) {
                    append(out, beans, name, info.getName());
                }
            }
        }
        return out.toString();
    }

    private static void append(StringBuilder out, MBeanServer beans, ObjectName name, String attribute) {
        try {
            Object value = beans.getAttribute(name, attribute);
            if (value instanceof Number || value instanceof Boolean) {
                out.append(name).append(' ').append(attribute).append('=').append(value).append('\n');
            }
        } catch (Exception ignored) {
            // an attribute that cannot be read is not a limit
        }
    }
}
