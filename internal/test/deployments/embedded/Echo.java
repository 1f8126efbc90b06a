import jakarta.servlet.ServletContextEvent;
import jakarta.servlet.ServletContextListener;
import jakarta.websocket.DeploymentException;
import jakarta.websocket.Endpoint;
import jakarta.websocket.EndpointConfig;
import jakarta.websocket.MessageHandler;
import jakarta.websocket.Session;
import jakarta.websocket.server.ServerContainer;
import jakarta.websocket.server.ServerEndpointConfig;

/** A WebSocket on /echo that sends back what it receives. */
public class Echo extends Endpoint {
    @Override
    public void onOpen(Session session, EndpointConfig config) {
        session.addMessageHandler(String.class, (MessageHandler.Whole<String>) text -> session.getAsyncRemote().sendText(text));
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
