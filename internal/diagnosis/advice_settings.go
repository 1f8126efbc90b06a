package diagnosis

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// setting is one of Tomcat's limits with the names its users know it by.
type setting struct {
	spring, springOld string // since Spring Boot 2.3, and before
	tomcat            string // the Connector's attribute
}

func maxThreadsSetting() setting {
	return setting{"server.tomcat.threads.max", "server.tomcat.max-threads", "maxThreads"}
}

func maxConnectionsSetting() setting {
	return setting{"server.tomcat.max-connections", "server.tomcat.max-connections", "maxConnections"}
}

func acceptCountSetting() setting {
	return setting{"server.tomcat.accept-count", "server.tomcat.accept-count", "acceptCount"}
}

func keepAliveSetting() setting {
	return setting{"server.tomcat.keep-alive-timeout", "server.tomcat.keep-alive-timeout", "keepAliveTimeout"}
}

func connectionTimeoutSetting() setting {
	return setting{"server.tomcat.connection-timeout", "server.tomcat.connection-timeout", "connectionTimeout"}
}

func maxQueueSetting() setting {
	return setting{"server.tomcat.threads.max-queue-capacity", "server.tomcat.threads.max-queue-capacity", "maxQueueSize"}
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
	if n := l.Connector.Processes; n > 1 {
		return fmt.Sprintf("%s from %d to %d in each of the %d processes that share the port", s.name(l), from/n, (to+n-1)/n, n)
	}
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
	if n, ok := reading.AcceptCount(j.Now); ok && n >= to {
		if known && most >= to {
			return fmt.Sprintf("Restart the server: %s is %d, and takes effect at listen().", acceptCountSetting().name(j.Now), n)
		}
		return fmt.Sprintf("Raise %s, then restart the server: listen() takes it once. %s is %d, that suffices.", limit, phrase.Capital(acceptCountSetting().name(j.Now)), n)
	}
	s := "Raise "
	if reading.IsTomcat(j.Now) {
		s += acceptCountSetting().name(j.Now)
	} else {
		s += reading.ServerName(j.Now) + "'s listen backlog"
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

// adviseUnknown says which limit is missing and how to give it.
func (j *judge) adviseUnknown() string {
	if !reading.IsTomcat(j.Now) && j.Now.Connector != nil && j.Now.Connector.Kind().Name == model.ServerOther().Name {
		return "See what " + reading.ServerName(j.Now) + " is busy with, and which limits of its own it has: these are known for Tomcat only."
	}
	if reading.Inexact(j.Now) {
		return "Look again: with all connections counted the verdict can distinguish a server that has reached maxConnections from one that accepts too slowly."
	}
	if reading.SlotsUncounted(j.Now) {
		return "Use a longer --interval, and run as root or as the process's user and group so that /proc/PID/fd can be read: the verdict can then distinguish a server whose slots are held by reset connections from one that accepts too slowly."
	}
	return "Give the limits that could not be found: --max-connections N --max-threads N. With them the verdict can distinguish a server that has reached maxConnections from one that accepts too slowly."
}

// acceptCountInVain answers the change that everybody tries first.
func (j *judge) acceptCountInVain() string {
	if reading.Queued(j.Now) == 0 && reading.WaitingRequests(j.Now) == 0 {
		return "Raising acceptCount would not help: nothing waits in the accept queue."
	}
	if reading.Queued(j.Now) == 0 {
		return "Raising acceptCount would not help: the accept queue is empty, requests wait inside " + reading.ServerName(j.Now) + ", in front of the threads."
	}
	s := "Raising acceptCount serves nobody faster, it only makes clients wait longer"
	if r, ok := j.acceptRate(); ok {
		n := j.Now.AcceptQueue.Capacity()
		return fmt.Sprintf("%s: %s takes about %s connections/s out of the queue, %d more in it would wait %s more.",
			s, reading.ServerName(j.Now), phrase.Decimal(r), n, phrase.Seconds(rateTime(n, r)))
	}
	return s + "."
}

// acceptRate is how many connections per second leave the accept queue. The
// kernel counts them for the whole namespace only (PassiveOpens), but a queue
// that stays full shows it: each connection that is taken out of it lets one in, so
// that all that are in it came in while the oldest of them waited. If the
// oldest has aged by as much as the clock, none was taken out, or they are still
// those of one burst: then nothing is known, and no rate is named.
func (j *judge) acceptRate() (perSecond float64, ok bool) {
	if j.Before == nil || !j.Both(reading.QueueFull) {
		return 0, false
	}
	now, was := j.Now.AcceptQueue.OldestWait, j.Before.AcceptQueue.OldestWait
	if now == nil || was == nil || *now <= 0 || *now > *was+j.Elapsed/2 {
		return 0, false
	}
	return float64(j.Now.AcceptQueue.Length) / now.Seconds(), true
}
