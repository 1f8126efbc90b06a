package attacks

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// actuator is an application whose Actuator says something else than it should.
func actuator(say string) attack {
	a := boot("application.properties", "management.server.port=18079\nmanagement.server.address=127.0.0.1\n").saying(`^Actuator of pid`)
	a.part = part{From: hostilePort - 1, To: hostilePort + 1, Accept: true, Say: say, Threads: []string{"http-nio-18080-e"}}
	return a
}

// found is an application whose own limit must be found in spite of what it does.
func found(p part, args ...string) attack {
	a := boot("application.properties", "", append([]string{"--server.tomcat.threads.max=42"}, args...)...).finding(42)
	a.part = p
	return a
}

// crowds are processes that are many, or that never answer, or that answer too
// much.
func crowds() map[string]attack {
	named := slices.Repeat([]string{"http-nio-18080-e"}, 8) // a process of fewer threads is not taken for a JVM
	churn := part{From: hostilePort, To: hostilePort + 1, Threads: named, SpawnSilent: true, Spawn: []string{
		"-jar", "app.jar", "--server.port=1", "--management.server.port=PORT", "--management.server.address=127.0.0.1",
	}}
	names := part{
		From: hostilePort, To: hostilePort + 1, Comm: "java\x1b[2J\u202e",
		Threads: slices.Concat(named, []string{"\x1b[31mX\x7f", "http-nio-\x1b[2J-"}),
	}
	low := attack{args: application(), files: map[string]string{"app.jar": bootJar(nil)}, part: part{From: 2000, To: 2600}, elsewhere: true, omitted: 150}
	many := attack{args: application(), files: map[string]string{"app.jar": bootJar(nil)}, part: part{From: 20_000, To: 25_000, NumberedOf: 5_000}, omitted: 4_500}
	return map[string]attack{
		"an Actuator that is silent":    actuator(""),
		"an Actuator without end":       actuator("HTTP/1.1 200 OK\r\nContent-Length: 10000000000\r\n\r\n" + strings.Repeat(secret, 8_000)),
		"an Actuator that drips":        actuator("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n" + secret),
		"an Actuator of deep JSON":      actuator("HTTP/1.1 200 OK\r\nContent-Length: 60000\r\n\r\n" + strings.Repeat(`{"a":`, 12_000)),
		"an Actuator that redirects":    actuator("HTTP/1.1 302 Found\r\nLocation: http://u:" + secret + "@127.0.0.1:18081/\r\nContent-Length: 0\r\n\r\n"),
		"an Actuator of HTTP/2":         actuator("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
		"an Actuator that swears":       actuator("HTTP/1.1 " + secret + "\r\n" + secret + "\r\n\r\n"),
		"600 listeners on low ports":    low,
		"5,000 listeners and threads":   many,
		"processes that come and go":    found(churn),
		"names with control characters": found(names, "--a=\x1b[2J\u202e"),
	}
}

// TestCrowds: each alone.
func TestCrowds(t *testing.T) {
	expensive(t)
	program := build(t)
	header(t)
	all := crowds()
	for _, v := range viewers(t) {
		for _, name := range slices.Sorted(maps.Keys(all)) {
			if all[name].elsewhere && v.same {
				continue // it can look into its own namespace only
			}
			a := all[name]
			if v.caps != nil && strings.HasPrefix(name, "an Actuator") {
				// Without CAP_DAC_READ_SEARCH whose socket it is cannot be proven.
				a = a.saying(`^Actuator of pid.*its owner cannot be seen`)
			}
			attempt(t, v.name, name, func(t *testing.T) row { return run(t, v, program, a) })
		}
	}
}
