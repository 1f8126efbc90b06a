package waiting;

import java.net.Socket;
import org.springframework.boot.autoconfigure.condition.ConditionalOnProperty;
import org.springframework.stereotype.Component;

/** A long poll that is in flight whatever the server does: a connection that asked once and is never answered. */
@Component
@ConditionalOnProperty("waiting.subscription")
class Subscription {
    Subscription(org.springframework.core.env.Environment env) {
        String to = env.getRequiredProperty("waiting.subscription");
        int colon = to.lastIndexOf(':');
        Thread t = new Thread(() -> {
            try (Socket s = new Socket(to.substring(0, colon), Integer.parseInt(to.substring(colon + 1)))) {
                s.getOutputStream().write("subscribe\n".getBytes());
                while (s.getInputStream().read() >= 0) {
                    // what is published is of no interest
                }
            } catch (java.io.IOException e) {
                // it ends with the backend
            }
        }, "subscription");
        t.setDaemon(true);
        t.start();
    }
}
