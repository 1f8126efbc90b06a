import java.io.PrintWriter;
import java.lang.reflect.Method;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;

import org.springframework.boot.Banner;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.WebApplicationType;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.context.properties.bind.Binder;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Configuration;

/**
 * One case: starts a Spring application in the prepared directory, environment
 * and command line, and writes what Spring's own Binder says of each name, one
 * "name TAB value" a line. With -Dprobe.web=true a real Tomcat is started too and
 * its connector is asked for the limits in force.
 */
public class Probe {

	@Configuration(proxyBeanMethods = false)
	static class Empty {
	}

	@Configuration(proxyBeanMethods = false)
	@EnableAutoConfiguration
	static class Web {
	}

	public static void main(String[] args) throws Exception {
		boolean web = Boolean.getBoolean("probe.web");
		Map<String, String> out = new LinkedHashMap<>();
		try {
			SpringApplication app = new SpringApplication(web ? Web.class : Empty.class);
			app.setBannerMode(Banner.Mode.OFF);
			app.setWebApplicationType(web ? WebApplicationType.SERVLET : WebApplicationType.NONE);
			try (ConfigurableApplicationContext context = app.run(args)) {
				bind(context, out);
				if (web) {
					connector(context, out);
				}
			}
		}
		catch (Throwable ex) {
			out.put("failed", root(ex));
		}
		try (PrintWriter writer = new PrintWriter(Files.newBufferedWriter(Path.of(System.getProperty("probe.out"))))) {
			out.forEach((name, value) -> writer.println(name + "\t" + escape(value)));
		}
		System.exit(0);
	}

	private static void bind(ConfigurableApplicationContext context, Map<String, String> out) {
		Binder binder = Binder.get(context.getEnvironment());
		for (String name : System.getProperty("probe.names").split(",")) {
			try {
				binder.bind(name, String.class).ifBound((value) -> out.put("value " + name, value));
			}
			catch (Throwable ex) {
				out.put("error " + name, root(ex));
			}
		}
		String[] active = context.getEnvironment().getActiveProfiles();
		out.put("profiles",
				String.join(",", active.length > 0 ? active : context.getEnvironment().getDefaultProfiles()));
	}

	private static void connector(ConfigurableApplicationContext context, Map<String, String> out) throws Exception {
		Object server = call(context, "getWebServer");
		Object connector = call(call(server, "getTomcat"), "getConnector");
		Object handler = call(connector, "getProtocolHandler");
		for (String name : Arrays.asList("MaxConnections", "AcceptCount", "MaxThreads", "MinSpareThreads",
				"MaxQueueSize", "MaxKeepAliveRequests", "ConnectionTimeout", "KeepAliveTimeout")) {
			try {
				out.put("connector " + name, String.valueOf(call(handler, "get" + name)));
			}
			catch (NoSuchMethodException ex) {
				// this Tomcat has no such setting
			}
		}
		out.put("connector Secure", String.valueOf(call(connector, "getSecure")));
		out.put("connector Executor", call(handler, "getExecutor").getClass().getSimpleName());
	}

	private static Object call(Object target, String name) throws Exception {
		Method method = target.getClass().getMethod(name);
		method.setAccessible(true);
		return method.invoke(target);
	}

	private static String root(Throwable ex) {
		while (ex.getCause() != null) {
			ex = ex.getCause();
		}
		return ex.getClass().getSimpleName();
	}

	private static String escape(String value) {
		return value.replace("\\", "\\\\").replace("\n", "\\n").replace("\t", "\\t");
	}

}
