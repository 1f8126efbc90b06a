package io.github.tcpdiag.sample;

import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.boot.context.properties.ConfigurationPropertiesScan;

/** An ordinary Spring Boot application on an embedded Tomcat, to be overloaded. */
@SpringBootApplication
@ConfigurationPropertiesScan
public class SampleServer {
    public static void main(String[] args) {
        SpringApplication.run(SampleServer.class, args);
    }
}
