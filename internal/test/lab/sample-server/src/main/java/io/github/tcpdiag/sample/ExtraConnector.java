package io.github.tcpdiag.sample;

import org.apache.catalina.connector.Connector;
import org.apache.coyote.http11.Http11NioProtocol;
import org.apache.tomcat.util.net.SSLHostConfig;
import org.apache.tomcat.util.net.SSLHostConfigCertificate;
import org.springframework.boot.autoconfigure.condition.ConditionalOnExpression;
import org.springframework.boot.context.properties.ConfigurationProperties;
import org.springframework.boot.web.embedded.tomcat.TomcatServletWebServerFactory;
import org.springframework.boot.web.server.WebServerFactoryCustomizer;
import org.springframework.boot.autoconfigure.web.ServerProperties;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;

/** A second connector in the same Tomcat: the usual pair of 8080 and 8443. */
@Configuration(proxyBeanMethods = false)
@ConditionalOnExpression("${sample.extra.port} > 0")
class ExtraConnector {

    @ConfigurationProperties("sample.extra")
    record Extra(int port, boolean tls, int maxThreads, int maxConnections, int acceptCount) {}

    @Bean
    WebServerFactoryCustomizer<TomcatServletWebServerFactory> secondConnector(Extra extra, ServerProperties server) {
        return factory -> factory.addAdditionalTomcatConnectors(connector(extra, server));
    }

    private static Connector connector(Extra extra, ServerProperties server) {
        Http11NioProtocol protocol = new Http11NioProtocol();
        protocol.setMaxThreads(extra.maxThreads());
        protocol.setMaxConnections(extra.maxConnections());
        protocol.setAcceptCount(extra.acceptCount());
        Connector connector = new Connector(protocol);
        connector.setPort(extra.port());
        if (extra.tls()) {
            connector.setScheme("https");
            connector.setSecure(true);
            protocol.setSSLEnabled(true);
            connector.addSslHostConfig(hostConfig(server));
        }
        return connector;
    }

    private static SSLHostConfig hostConfig(ServerProperties server) {
        SSLHostConfig host = new SSLHostConfig();
        SSLHostConfigCertificate certificate =
                new SSLHostConfigCertificate(host, SSLHostConfigCertificate.Type.UNDEFINED);
        certificate.setCertificateKeystoreFile(server.getSsl().getKeyStore());
        certificate.setCertificateKeystorePassword(server.getSsl().getKeyStorePassword());
        host.addCertificate(certificate);
        return host;
    }
}
