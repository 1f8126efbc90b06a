import java.util.concurrent.CountDownLatch;

/** Virtual threads with the names of Spring Boot's handlers that wait. */
public class Virtual {
    static void find() throws InterruptedException {
        Thread.sleep(Long.MAX_VALUE);
    }

    public static void main(String[] args) throws Exception {
        int threads = Integer.parseInt(args[0]);
        CountDownLatch begun = new CountDownLatch(threads);
        for (int i = 0; i < threads; i++) {
            Thread.ofVirtual().name("tomcat-handler-" + i).start(() -> {
                try {
                    begun.countDown();
                    find();
                } catch (InterruptedException e) {
                    Thread.currentThread().interrupt();
                }
            });
        }
        begun.await();
        System.out.println("up");
        System.in.read();
    }
}
