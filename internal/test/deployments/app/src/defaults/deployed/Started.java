package deployed;

import java.util.Map;
import org.springframework.boot.SpringApplication;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.PropertySource;

/** Default properties given in code, and a property source of its own name. */
@Configuration(proxyBeanMethods = false)
@PropertySource("classpath:limits-of-this-application.properties")
public class Started {
    public static void main(String[] args) {
        SpringApplication app = new SpringApplication(Application.class);
        app.setDefaultProperties(Map.of("server.tomcat.threads.max", "7", "server.tomcat.accept-count", "9"));
        app.run(args);
    }
}
