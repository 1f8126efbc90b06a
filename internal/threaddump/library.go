package threaddump

import (
	"cmp"
	"strings"
)

// jdk are the packages of the Java runtime.
func jdk() []string {
	return []string{"java.", "jdk.", "sun.", "com.sun.", "com.oracle.", "javax.", "jakarta."}
}

// libraries are the packages of servers, frameworks, drivers and clients, which an
// application is not.
func libraries() []string {
	return []string{
		"org.apache.", "org.springframework.", "org.hibernate.", "org.eclipse.", "org.jboss.", "org.wildfly.", "org.xnio.",
		"io.undertow.", "io.netty.", "io.vertx.", "io.quarkus.", "io.micronaut.", "io.micrometer.", "io.opentelemetry.", "io.grpc.",
		"io.r2dbc.", "io.lettuce.", "io.reactivex.", "io.smallrye.", "io.github.resilience4j.", "io.prometheus.", "reactor.",
		"redis.clients.", "org.redisson.", "com.zaxxer.hikari.", "com.mchange.", "org.postgresql.", "com.mysql.", "org.mariadb.",
		"oracle.", "com.microsoft.sqlserver.", "com.ibm.db2.", "org.h2.", "org.hsqldb.", "com.mongodb.", "org.bson.", "com.datastax.",
		"org.jooq.", "org.mybatis.", "com.querydsl.", "com.rabbitmq.", "com.fasterxml.", "com.google.", "com.github.benmanes.",
		"com.netflix.", "com.amazonaws.", "software.amazon.", "com.azure.", "okhttp3.", "okio.", "retrofit2.", "feign.",
		"brave.", "zipkin2.", "ch.qos.", "org.slf4j.", "org.aspectj.", "net.bytebuddy.", "net.sf.", "org.quartz.", "org.glassfish.",
		"org.elasticsearch.client.", "co.elastic.", "com.datadog.", "datadog.", "com.newrelic.", "kotlin.", "kotlinx.", "scala.", "groovy.",
		"org.codehaus.", "clojure.", "akka.", "play.", "org.junit.", "graphql.",
	}
}

// generated are parts of the names of classes that are made at run time, which
// stand before the method that they call.
func generated() []string {
	return []string{"CGLIB$$", "$$FastClass", "$$EnhancerBy", "$Proxy", "ByteBuddy$"}
}

// frameKinds sorts frames into the JDK's, libraries' and the application's.
type frameKinds struct {
	jdk, libraries, generated []string
}

func newFrameKinds() frameKinds {
	return frameKinds{jdk: jdk(), libraries: libraries(), generated: generated()}
}

func (p *frameKinds) isJDK(frame string) bool { return begins(frame, p.jdk) }

// isApplication: compiled pages are the application's, though their package is Tomcat's.
func (p *frameKinds) isApplication(frame string) bool {
	if strings.HasPrefix(frame, "org.apache.jsp.") {
		return true
	}
	if p.isJDK(frame) || begins(frame, p.libraries) {
		return false
	}
	for _, part := range p.generated {
		if strings.Contains(frame, part) {
			return false
		}
	}
	return true
}

func begins(frame string, packages []string) bool {
	for _, p := range packages {
		if strings.HasPrefix(frame, p) {
			return true
		}
	}
	return false
}

// vendor is the beginning of a library's package: two names, "com.zaxxer.".
func vendor(frame string) string {
	first := strings.IndexByte(frame, '.')
	if first < 0 {
		return frame
	}
	second := strings.IndexByte(frame[first+1:], '.')
	if second < 0 {
		return frame[:first+1]
	}
	return frame[:first+second+2]
}

// entered is where a thread is: the method by which the innermost library was
// entered, or that of the JDK where the application called the JDK itself, and the
// application's topmost method. Without one of the application it is the innermost
// method of a library, or of the JDK.
func (p *frameKinds) entered(frames []string) (library, application string) {
	var runtime, inner, entry string
	left := false
	for _, f := range frames {
		switch {
		case p.isApplication(f):
			return cmp.Or(entry, runtime, f), f
		case inner != "":
			left = left || !p.isJDK(f) && !strings.HasPrefix(f, vendor(inner))
			if !left && !p.isJDK(f) {
				entry = f
			}
		case p.isJDK(f):
			runtime = f
		default:
			inner, entry = f, f
		}
	}
	if inner == "" && len(frames) > 0 {
		inner = frames[0]
	}
	return inner, ""
}
