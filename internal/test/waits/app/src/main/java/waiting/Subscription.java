package waiting;

import java.net.Socket;
import org.springframework.boot.autoconfigure.condition.ConditionalOnProperty;
import org.springframework.stereotype.Component;

/**
 * Connections that are in flight whatever the server does: each asks with a line and, once
 * it is answered, at once again. A subscription is never answered, a long poll at times.
 */
@Component
@ConditionalOnProperty("waiting.subscription")
class Subscription {
    Subscription(org.springframework.core.env.Environment env) {
        for (String to : env.getRequiredProperty("waiting.subscription").split(",")) {
            Thread t = new Thread(() -> poll(to), "subscription");
            t.setDaemon(true);
            t.start();
        }
    }

    private static void poll(String to) {
        int colon = to.lastIndexOf(':');
        try (Socket s = new Socket(to.substring(0, colon), Integer.parseInt(to.substring(colon + 1)))) {
            int c = '\n';
            while (c >= 0) {
                if (c == '\n') {
                    s.getOutputStream().write("next\n".getBytes());
                }
                c = s.getInputStream().read();
            }
        } catch (java.io.IOException e) {
            // it ends with the backend
        }
    }
}
