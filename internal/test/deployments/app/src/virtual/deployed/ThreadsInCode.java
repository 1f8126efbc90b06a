package deployed;

import java.util.concurrent.Executors;
import org.springframework.boot.web.embedded.tomcat.TomcatProtocolHandlerCustomizer;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;

/** A virtual thread for each request, set in code (Java 21). */
@Configuration(proxyBeanMethods = false)
class ThreadsInCode {
    @Bean
    TomcatProtocolHandlerCustomizer<?> virtualThreads() {
        return handler -> {
            try {
                handler.setExecutor((java.util.concurrent.Executor)
                        Executors.class.getMethod("newVirtualThreadPerTaskExecutor").invoke(null));
            } catch (ReflectiveOperationException e) {
                throw new IllegalStateException(e);
            }
        };
    }
}
