import jakarta.servlet.ServletContextEvent;
import jakarta.servlet.ServletContextListener;
import jakarta.websocket.DeploymentException;
import jakarta.websocket.Endpoint;
import jakarta.websocket.EndpointConfig;
import jakarta.websocket.MessageHandler;
import jakarta.websocket.Session;
import jakarta.websocket.server.ServerContainer;
import jakarta.websocket.server.ServerEndpointConfig;
import java.io.IOException;
import java.io.UncheckedIOException;

/** A WebSocket on /echo that sends back what it receives. */
public class Echo extends Endpoint {
    @Override
    public void onOpen(Session session, EndpointConfig config) {
        session.addMessageHandler(String.class, (MessageHandler.Whole<String>) text -> answer(session, text));
    }

    /**
     * Waits until the text is sent: the client may have it, and send the next, before an
     * asynchronous send has ended, which then fails (TEXT_FULL_WRITING), and closes.
     */
    private static void answer(Session session, String text) {
        try {
            session.getBasicRemote().sendText(text);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** Tomcat then closes the connection; the log says why. */
    @Override
    public void onError(Session session, Throwable reason) {
        reason.printStackTrace();
    }

    /** Adds the endpoint when the container has started. */
    public static class Start implements ServletContextListener {
        @Override
        public void contextInitialized(ServletContextEvent event) {
            ServerContainer container = (ServerContainer) event.getServletContext().getAttribute(ServerContainer.class.getName());
            try {
                container.addEndpoint(ServerEndpointConfig.Builder.create(Echo.class, "/echo").build());
            } catch (DeploymentException e) {
                throw new IllegalStateException(e);
            }
        }
    }
}
