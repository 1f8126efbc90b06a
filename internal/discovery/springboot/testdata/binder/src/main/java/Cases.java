import java.io.File;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;

import org.springframework.boot.SpringBootVersion;
import org.springframework.boot.json.JsonParserFactory;

/**
 * Runs every case of cases.json with the Spring Boot of this class path, each in
 * a JVM of its own, and writes what came out: Cases cases.json expected-VERSION.json [java].
 */
public class Cases {

	public static void main(String[] args) throws Exception {
		Map<String, Object> all = JsonParserFactory.getJsonParser().parseMap(Files.readString(Path.of(args[0])));
		String names = String.join(",", strings(all.get("names")));
		Map<String, Map<String, String>> results = new TreeMap<>();
		String java = args.length > 2 ? args[2] : System.getProperty("java.home") + "/bin/java";
		for (Object o : (List<?>) all.get("cases")) {
			Map<?, ?> c = (Map<?, ?>) o;
			String only = (String) c.get("boot");
			if (only == null || SpringBootVersion.getVersion().matches(only)) {
				results.put((String) c.get("name"), run(c, names, java));
			}
		}
		Files.writeString(Path.of(args[1]), json(results));
	}

	private static Map<String, String> run(Map<?, ?> c, String names, String java) throws Exception {
		Path dir = Files.createTempDirectory("binder");
		Path classes = Files.createDirectories(dir.resolve("classes"));
		Path cwd = Files.createDirectories(dir.resolve("cwd"));
		for (Map.Entry<?, ?> e : map(c.get("files")).entrySet()) {
			String name = (String) e.getKey();
			Path file = name.startsWith("classpath:") ? classes.resolve(name.substring(10)) : cwd.resolve(name);
			Files.createDirectories(file.getParent());
			Files.write(file, ((String) e.getValue()).getBytes(StandardCharsets.UTF_8));
		}
		Path out = dir.resolve("out");
		List<String> command = new ArrayList<>();
		command.add(java);
		command.add("-Dprobe.names=" + names);
		command.add("-Dprobe.out=" + out);
		command.add("-Dprobe.web=" + (c.get("web") != null));
		command.addAll(List.of("-XX:TieredStopAtLevel=1", "-Xshare:auto", "-Djava.io.tmpdir=" + dir));
		command.addAll(strings(c.get("vm")));
		command.add("-cp");
		command.add(classes + File.pathSeparator + System.getProperty("java.class.path"));
		command.add("Probe");
		command.addAll(strings(c.get("args")));
		ProcessBuilder builder = new ProcessBuilder(command).directory(cwd.toFile());
		builder.environment().clear();
		builder.environment().put("PATH", "/usr/bin:/bin");
		map(c.get("env")).forEach((k, v) -> builder.environment().put((String) k, (String) v));
		Process process = builder.redirectErrorStream(true)
			.redirectOutput(dir.resolve("log").toFile())
			.start();
		if (!process.waitFor(60, TimeUnit.SECONDS)) {
			process.destroyForcibly();
		}
		Map<String, String> result = new TreeMap<>();
		if (!Files.exists(out)) {
			throw new IllegalStateException(c.get("name") + ": " + Files.readString(dir.resolve("log")));
		}
		for (String line : Files.readAllLines(out)) {
			String[] parts = line.split("\t", 2);
			result.put(parts[0], parts[1]);
		}
		System.out.println(c.get("name") + " " + result);
		return result;
	}

	private static Map<?, ?> map(Object o) {
		return o != null ? (Map<?, ?>) o : Collections.emptyMap();
	}

	private static List<String> strings(Object o) {
		List<String> list = new ArrayList<>();
		if (o != null) {
			((List<?>) o).forEach((e) -> list.add((String) e));
		}
		return list;
	}

	private static String json(Map<String, Map<String, String>> results) {
		StringBuilder b = new StringBuilder("{");
		String comma = "\n";
		for (Map.Entry<String, Map<String, String>> e : results.entrySet()) {
			b.append(comma).append("  ").append(quote(e.getKey())).append(": {");
			comma = "\n";
			for (Map.Entry<String, String> v : e.getValue().entrySet()) {
				b.append(comma).append("    ").append(quote(v.getKey())).append(": ").append(quote(v.getValue()));
				comma = ",\n";
			}
			b.append("\n  }");
			comma = ",\n";
		}
		return b.append("\n}\n").toString();
	}

	private static String quote(String s) {
		StringBuilder b = new StringBuilder("\"");
		for (char c : s.toCharArray()) {
			if (c == '"' || c == '\\') {
				b.append('\\').append(c);
			}
			else if (c < 0x20 || c > 0x7e) {
				b.append(String.format("\\u%04x", (int) c));
			}
			else {
				b.append(c);
			}
		}
		return b.append('"').toString();
	}

}
