package advice

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/symptoms"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// Setting is one of Tomcat's limits with the names its users know it by.
type Setting struct {
	spring, springOld string // since Spring Boot 2.3, and before
	tomcat            string // the Connector's attribute
}

// MaxThreadsSetting is what maxThreads is called.
func MaxThreadsSetting() Setting {
	return Setting{"server.tomcat.threads.max", "server.tomcat.max-threads", "maxThreads"}
}

// MaxConnectionsSetting is what maxConnections is called.
func MaxConnectionsSetting() Setting {
	return Setting{"server.tomcat.max-connections", "server.tomcat.max-connections", "maxConnections"}
}

// AcceptCountSetting is what acceptCount is called.
func AcceptCountSetting() Setting {
	return Setting{"server.tomcat.accept-count", "server.tomcat.accept-count", "acceptCount"}
}

// KeepAliveSetting is what keepAliveTimeout is called.
func KeepAliveSetting() Setting {
	return Setting{"server.tomcat.keep-alive-timeout", "server.tomcat.keep-alive-timeout", "keepAliveTimeout"}
}

// ConnectionTimeoutSetting is what connectionTimeout is called.
func ConnectionTimeoutSetting() Setting {
	return Setting{"server.tomcat.connection-timeout", "server.tomcat.connection-timeout", "connectionTimeout"}
}

// MaxQueueSetting is what the length of the executor's queue is called.
func MaxQueueSetting() Setting {
	return Setting{"server.tomcat.threads.max-queue-capacity", "server.tomcat.threads.max-queue-capacity", "maxQueueSize"}
}

// Name is what the setting is called where this server is configured.
func (set Setting) Name(l *model.Listener) string {
	c := l.Connector
	switch {
	case c != nil && c.Framework == "spring-boot" && springBefore23(c.FrameworkVersion):
		return set.springOld
	case c != nil && c.Framework == "spring-boot":
		return set.spring
	case c != nil && c.Executor != "" && (set.tomcat == "maxThreads" || set.tomcat == "maxQueueSize"):
		return set.tomcat + ` of the Executor "` + c.Executor + `"`
	}
	return set.tomcat
}

func springBefore23(version string) bool {
	major, rest, _ := strings.Cut(version, ".")
	minor, _, _ := strings.Cut(rest, ".")
	a, err1 := strconv.Atoi(major)
	b, err2 := strconv.Atoi(minor)
	return err1 == nil && (a < 2 || err2 == nil && a == 2 && b < 3)
}

// supposed: the value is what was counted, and the one in force may be larger.
func supposed(in *model.Setting[int]) bool {
	return in != nil && in.Uncertain && in.Kind == model.SourceInferred
}

// FromTo is a change with both numbers, where the value in force is known.
func (set Setting) FromTo(l *model.Listener, from, to int) string {
	if n := l.Connector.Processes; n > 1 {
		return fmt.Sprintf("%s from %d to %d in each of the %d processes that share the port", set.Name(l), from/n, (to+n-1)/n, n)
	}
	if set.tomcat == "maxConnections" && supposed(l.Connector.MaxConnections) {
		return fmt.Sprintf("%s to %d", set.Name(l), to)
	}
	return fmt.Sprintf("%s from %d to %d", set.Name(l), from, to)
}

// BacklogChange is how the accept queue is made longer. Where more than that is
// configured, it is the kernel that holds it short.
func BacklogChange(s *symptoms.Symptoms, to int) string {
	most, known := s.Sysctl["somaxconn"]
	limit := fmt.Sprintf("net.core.somaxconn to at least %d", to)
	if known {
		limit += fmt.Sprintf(" (now %d)", most)
	}
	if n, ok := reading.AcceptCount(s.Now); ok && n >= to {
		if known && most >= to {
			return fmt.Sprintf("Restart the server: %s is %d, and takes effect at listen().", AcceptCountSetting().Name(s.Now), n)
		}
		return fmt.Sprintf("Raise %s, then restart the server: listen() takes it once. %s is %d, that suffices.", limit, phrase.Capital(AcceptCountSetting().Name(s.Now)), n)
	}
	text := "Raise "
	if reading.IsTomcat(s.Now) {
		text += AcceptCountSetting().Name(s.Now)
	} else {
		text += reading.ServerName(s.Now) + "'s listen backlog"
	}
	if s.Now.AcceptQueue != nil {
		text += fmt.Sprintf(" from %d", s.Now.AcceptQueue.Limit)
	}
	text += fmt.Sprintf(" to %d", to)
	if !known || most < to {
		return text + " and " + limit + ", then restart the server: listen() takes both once."
	}
	return text + ", then restart the server: it takes effect at listen()."
}

// Unknown says which limit is missing and how to give it.
func Unknown(s *symptoms.Symptoms) string {
	if !reading.IsTomcat(s.Now) && s.Now.Connector != nil && s.Now.Connector.Kind().Name == model.ServerOther().Name {
		return "See what " + reading.ServerName(s.Now) + " is busy with, and which limits of its own it has: these are known for Tomcat only."
	}
	if s.NothingAccepted() > 0 && s.HoldsNobody() {
		return "See what its threads do (--thread-dump as its user and group, or jstack PID): no connection is held and nothing is accepted, as where the connector is paused, or what accepts has ended. A longer accept queue, more threads or connections would only let more clients wait."
	}
	if reading.OtherJVM(s.Now) {
		return "See what its threads do (a thread dump), and which limits of its own the server has: these are known for Tomcat only."
	}
	if reading.Inexact(s.Now) {
		return "Look again: with all connections counted the verdict can distinguish a server that has reached maxConnections from one that accepts too slowly."
	}
	if reading.SlotsUncounted(s.Now) {
		return "Use a longer --interval, and run as root or as the process's user and group so that /proc/PID/fd can be read: the verdict can then distinguish a server whose slots are held by reset connections from one that accepts too slowly."
	}
	if s.FullBefore() {
		return "Look again, for longer and while it happens: a reading at the moment of the drops shows whether all connections were taken then, or came faster than they were accepted."
	}
	return "Give the limits that could not be found: --max-connections N --max-threads N. With them the verdict can distinguish a server that has reached maxConnections from one that accepts too slowly."
}

// AcceptCountInVain answers the change that everybody tries first.
func AcceptCountInVain(s *symptoms.Symptoms) string {
	if reading.Queued(s.Now) == 0 && reading.WaitingRequests(s.Now) == 0 {
		return "Raising acceptCount would not help: nothing waits in the accept queue."
	}
	if reading.Queued(s.Now) == 0 {
		return "Raising acceptCount would not help: the accept queue is empty, requests wait inside " + reading.ServerName(s.Now) + ", in front of the threads."
	}
	text := "Raising acceptCount serves nobody faster, it only makes clients wait longer"
	if r, ok := AcceptRate(s); ok {
		n := s.Now.AcceptQueue.Capacity()
		return fmt.Sprintf("%s: %s takes about %s connections/s out of the queue, %d more in it would wait %s more.",
			text, reading.ServerName(s.Now), phrase.Decimal(r), n, phrase.Seconds(rateTime(n, r)))
	}
	return text + "."
}

// AcceptRate is how many connections per second leave the accept queue. The
// kernel counts them for the whole namespace only (PassiveOpens), but a queue
// that stays full shows it: each connection that is taken out of it lets one in, so
// that all that are in it came in while the oldest of them waited. If the
// oldest has aged by as much as the clock, none was taken out, or they are still
// those of one burst: then nothing is known, and no rate is named.
func AcceptRate(s *symptoms.Symptoms) (perSecond float64, ok bool) {
	if s.Before == nil || !s.Both(reading.QueueFull) {
		return 0, false
	}
	now, was := s.Now.AcceptQueue.OldestWait, s.Before.AcceptQueue.OldestWait
	if now == nil || was == nil || *now <= 0 || *now > *was+s.Elapsed/2 {
		return 0, false
	}
	return float64(s.Now.AcceptQueue.Length) / now.Seconds(), true
}

// RoundUp gives a number that a person would write into a configuration, never less than
// n: 12, 15, 20, 25, 30, 40, 50, 60, 80, 100, 120; as it is up to ten.
func RoundUp(n int) int {
	if n <= 10 {
		return n
	}
	for scale := 1; ; scale *= 10 {
		for _, nice := range []int{12, 15, 20, 25, 30, 40, 50, 60, 80, 100} {
			if to := nice * scale; to >= n {
				return to
			}
		}
	}
}

// Spare adds a quarter, so that the setting is not at its limit the next day.
func Spare(n int) int { return RoundUp(n + (n+3)/4) }

// rateTime is how long n take at a rate per second.
func rateTime(n int, perSecond float64) time.Duration {
	return time.Duration(min(float64(n)/perSecond, 1e6) * float64(time.Second))
}

// ShortRequestTime says that the server does not wait long for a request, "" where it does or that is not known.
func ShortRequestTime(s *symptoms.Symptoms) string {
	if s.Now.Connector == nil {
		return ""
	}
	t := s.Now.Connector.ConnectionTimeout
	if t == nil || t.Value <= 0 || t.Value >= ShortTimeout {
		return ""
	}
	return phrase.Sprintf("a client has %s for its request (%s)", phrase.Seconds(t.Value), ConnectionTimeoutSetting().Name(s.Now))
}

// IdleTimeout is how long the server keeps an idle connection.
func IdleTimeout(s *symptoms.Symptoms) string {
	t := s.Now.Connector.KeepAlive()
	if t == nil || t.Value <= 0 {
		return ""
	}
	return ", now " + phrase.Seconds(t.Value)
}
