package deployed;

import org.apache.coyote.AbstractProtocol;
import org.springframework.boot.web.embedded.tomcat.TomcatConnectorCustomizer;
import org.springframework.boot.web.embedded.tomcat.TomcatServletWebServerFactory;
import org.springframework.boot.web.server.WebServerFactoryCustomizer;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;

/** All limits set in code: no file has them. */
@Configuration(proxyBeanMethods = false)
class LimitsInCode {
    @Bean
    WebServerFactoryCustomizer<TomcatServletWebServerFactory> limits() {
        TomcatConnectorCustomizer set = connector -> {
            AbstractProtocol<?> protocol = (AbstractProtocol<?>) connector.getProtocolHandler();
            protocol.setMaxConnections(17);
            protocol.setMaxThreads(7);
            protocol.setAcceptCount(9);
        };
        return factory -> factory.addConnectorCustomizers(set);
    }
}
