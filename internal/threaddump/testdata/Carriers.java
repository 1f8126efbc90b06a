import java.lang.management.ManagementFactory;
import java.lang.management.PlatformManagedObject;

/**
 * Virtual threads that compute, more of them than there are carriers. Before "up" it says
 * what the JVM's own bean does of them (JDK 24): parallelism, pool size, mounted, queued.
 */
public class Carriers {
    static void compute() {
        for (long n = 0; n >= 0; n++) {
            Thread.onSpinWait();
        }
    }

    public static void main(String[] args) throws Exception {
        for (int i = 0; i < Integer.parseInt(args[0]); i++) {
            Thread.ofVirtual().name("tomcat-handler-" + i).start(Carriers::compute);
        }
        Class<?> bean;
        try {
            bean = Class.forName("jdk.management.VirtualThreadSchedulerMXBean");
        } catch (ClassNotFoundException e) {
            System.out.println("none\nup");
            System.in.read();
            return;
        }
        Object scheduler = ManagementFactory.getPlatformMXBean(bean.asSubclass(PlatformManagedObject.class));
        String said = "";
        for (int left = 100; left > 0 && !said.startsWith("2 2 2 "); left--) {
            Thread.sleep(50); // until both carriers have one
            said = "";
            for (String name : new String[] {"Parallelism", "PoolSize", "MountedVirtualThreadCount", "QueuedVirtualThreadCount"}) {
                said += bean.getMethod("get" + name).invoke(scheduler) + " ";
            }
        }
        System.out.println(said + "\nup");
        System.in.read();
        Runtime.getRuntime().halt(0);
    }
}
