package deployed;

import java.time.Duration;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.bind.annotation.RestController;
import reactor.core.publisher.Mono;

/** Netty instead of Tomcat: handlers that wait without a thread, and ones that block an event loop. */
@SpringBootApplication
@RestController
public class Flux {
    public static void main(String[] args) {
        SpringApplication.run(Flux.class, args);
    }

    @GetMapping("/waits")
    Mono<String> waits(@RequestParam(defaultValue = "0") long ms) {
        return Mono.just("hello").delayElement(Duration.ofMillis(ms));
    }

    @GetMapping("/blocks")
    String blocks(@RequestParam(defaultValue = "0") long ms) throws InterruptedException {
        Thread.sleep(ms);
        return "hello";
    }
}
