package diagnosis

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/tcpdiag/tcpdiag/internal/phrase"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// setting is one of Tomcat's limits with the names its users know it by.
type setting struct {
	spring, springOld string // since Spring Boot 2.3, and before
	tomcat            string // the Connector's attribute
	flag              string // tcpdiag's own, "" where there is none
}

func maxThreadsSetting() setting {
	return setting{"server.tomcat.threads.max", "server.tomcat.max-threads", "maxThreads", "--max-threads"}
}

func maxConnectionsSetting() setting {
	return setting{"server.tomcat.max-connections", "server.tomcat.max-connections", "maxConnections", "--max-connections"}
}

func acceptCountSetting() setting {
	return setting{"server.tomcat.accept-count", "server.tomcat.accept-count", "acceptCount", "--accept-count"}
}

func keepAliveSetting() setting {
	return setting{"server.tomcat.keep-alive-timeout", "server.tomcat.keep-alive-timeout", "keepAliveTimeout", ""}
}

func connectionTimeoutSetting() setting {
	return setting{"server.tomcat.connection-timeout", "server.tomcat.connection-timeout", "connectionTimeout", ""}
}

func maxQueueSetting() setting {
	return setting{"server.tomcat.threads.max-queue-capacity", "server.tomcat.threads.max-queue-capacity", "maxQueueSize", ""}
}

// name is what the setting is called where this server is configured.
func (s setting) name(l *model.Listener) string {
	c := l.Connector
	switch {
	case c != nil && c.Framework == "spring-boot" && springBefore23(c.FrameworkVersion):
		return s.springOld
	case c != nil && c.Framework == "spring-boot":
		return s.spring
	case c != nil && c.Executor != "" && (s.tomcat == "maxThreads" || s.tomcat == "maxQueueSize"):
		return s.tomcat + ` of the Executor "` + c.Executor + `"`
	}
	return s.tomcat
}

func springBefore23(version string) bool {
	major, rest, _ := strings.Cut(version, ".")
	minor, _, _ := strings.Cut(rest, ".")
	a, err1 := strconv.Atoi(major)
	b, err2 := strconv.Atoi(minor)
	return err1 == nil && (a < 2 || err2 == nil && a == 2 && b < 3)
}

// fromTo is a change with both numbers.
func (s setting) fromTo(l *model.Listener, from, to int) string {
	return fmt.Sprintf("%s from %d to %d", s.name(l), from, to)
}

// backlogChange is how the accept queue is made longer. Where more than that is
// configured, it is the kernel that holds it short.
func (j *judge) backlogChange(to int) string {
	most, known := j.Sysctl["somaxconn"]
	limit := fmt.Sprintf("net.core.somaxconn to at least %d", to)
	if known {
		limit += fmt.Sprintf(" (now %d)", most)
	}
	if n, ok := acceptCount(j.Now); ok && n >= to {
		if known && most >= to {
			return fmt.Sprintf("Restart the server: %s is %d, and takes effect at listen().", acceptCountSetting().name(j.Now), n)
		}
		return fmt.Sprintf("Raise %s, then restart the server: listen() takes it once. %s is %d, that suffices.", limit, phrase.Capital(acceptCountSetting().name(j.Now)), n)
	}
	s := "Raise "
	if isTomcat(j.Now) {
		s += acceptCountSetting().name(j.Now)
	} else {
		s += serverName(j.Now) + "'s listen backlog"
	}
	if j.Now.AcceptQueue != nil {
		s += fmt.Sprintf(" from %d", j.Now.AcceptQueue.Limit)
	}
	s += fmt.Sprintf(" to %d", to)
	if !known || most < to {
		return s + " and " + limit + ", then restart the server: listen() takes both once."
	}
	return s + ", then restart the server: it takes effect at listen()."
}
