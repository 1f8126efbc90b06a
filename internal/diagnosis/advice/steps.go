// Package advice has the changes that causes and findings propose: settings by the names
// that their owner knows, values that a person would write, and steps to copy.
package advice

import (
	"strconv"
	"strings"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/symptoms"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// Action is a step that only finds something out, or is done elsewhere.
func Action(text string) model.Step { return model.Step{Text: text} }

// Command is a step that is one line to copy.
func Command(text, line string) model.Step { return model.Step{Text: text, Command: line} }

// limit is the name of what a setting limits, for Step.Limit.
func (set Setting) limit() string {
	switch set.tomcat {
	case "maxThreads":
		return reading.StageMaxThreads
	case "maxConnections":
		return reading.StageMaxConnections
	case "acceptCount":
		return reading.StageAcceptQueue
	case "maxQueueSize":
		return reading.LimitExecutorQueue
	}
	return ""
}

// Change is a step that gives one of Tomcat's limits another value. Where several
// processes share the port the numbers are each one's.
func (set Setting) Change(s *symptoms.Symptoms, in *model.Setting[int], text string, from, to int) model.Step {
	if n := s.Now.Connector.Processes; n > 1 && set.tomcat != "acceptCount" {
		from, to = from/n, (to+n-1)/n
		text += phrase.Sprintf(" in each of the %d processes that share the port", n)
	}
	step := model.Step{Text: text, Setting: set.Name(s.Now), File: FoundIn(in), To: strconv.Itoa(to), Limit: set.limit()}
	if !supposed(in) {
		step.From = strconv.Itoa(from)
	}
	return step
}

// ChangeTime is the same for a timeout, as it is written where this server is configured: "5 s" would not be read.
func (set Setting) ChangeTime(s *symptoms.Symptoms, in *model.Setting[time.Duration], text string, to time.Duration) model.Step {
	step := model.Step{Text: text, Setting: set.Name(s.Now), File: FoundIn(in), To: written(s.Now, to)}
	switch {
	case in == nil:
	case in.Value <= 0:
		step.From = "never"
	default:
		step.From = written(s.Now, in.Value)
	}
	return step
}

// written is a time in a configuration: Spring Boot's with its unit, the Connector's in milliseconds.
func written(l *model.Listener, d time.Duration) string {
	ms := strconv.FormatInt(d.Milliseconds(), 10)
	switch c := l.Connector; {
	case c == nil || c.Framework != "spring-boot":
		return ms
	case d%time.Second == 0:
		return strconv.FormatInt(int64(d/time.Second), 10) + "s"
	}
	return ms + "ms"
}

// FoundIn is where a value is to be changed: nowhere yet if it is a default, and not where
// tcpdiag was told of it.
func FoundIn[T any](s *model.Setting[T]) string {
	if s == nil {
		return ""
	}
	switch s.Kind {
	case model.SourceFile, model.SourceEnv, model.SourceArgument, model.SourceProperty:
		return s.Source
	}
	return ""
}

// DumpStep asks the JVM what its threads wait for, as its user and group: of a container's these have no names on its
// host, and the container may have neither a shell nor sudo.
func DumpStep(s *symptoms.Symptoms, text string) model.Step {
	p := s.Now.Process
	if p == nil || p.PID == 0 {
		return Action(text + " (jstack)")
	}
	if pod := s.Now.Pod; pod != nil && plain(pod.Name) && plain(pod.Namespace) {
		return Command(text, "kubectl tcpdiag "+pod.Name+" -n "+pod.Namespace+" --thread-dump")
	}
	if p.Container != "" || p.PodUID != "" {
		return Command(text+" (on its host)", phrase.Sprintf(`sudo setpriv --reuid="$(stat -c %%u /proc/%[1]v)" --regid="$(stat -c %%g /proc/%[1]v)" --clear-groups tcpdiag snapshot --pid %[1]v --thread-dump`, p.PID))
	}
	return Command(text, phrase.Sprintf(`sudo -u "$(ps -o user= -p %[1]v)" tcpdiag snapshot --pid %[1]v --thread-dump`, p.PID))
}

// plain: it is one word of a command line, as the names that Kubernetes allows are.
func plain(name string) bool {
	return name != "" && name[0] != '-' && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789.-") == ""
}

// BacklogSteps make the accept queue longer: acceptCount, and net.core.somaxconn above
// it, both of which listen() takes once.
func BacklogSteps(s *symptoms.Symptoms, to int) (out []model.Step) {
	most, known := s.Sysctl["somaxconn"]
	if !known || most < to {
		out = append(out, SomaxconnStep(s, to))
	}
	if n, ok := reading.AcceptCount(s.Now); ok && n >= to {
		return append(out, Action("Restart the server: listen() takes the backlog once"))
	}
	const text = "Make the accept queue longer, and restart: listen() takes it once"
	if !reading.IsTomcat(s.Now) || s.Now.AcceptQueue == nil {
		return append(out, model.Step{Text: text, Setting: reading.ServerName(s.Now) + "'s listen backlog", To: strconv.Itoa(to), Limit: reading.StageAcceptQueue})
	}
	return append(out, AcceptCountSetting().Change(s, s.Now.Connector.AcceptCount, text, s.Now.AcceptQueue.Limit, to))
}

// SomaxconnStep raises net.core.somaxconn.
func SomaxconnStep(s *symptoms.Symptoms, to int) model.Step {
	step := model.Step{
		Text:    "Raise what the kernel allows, in the server's network namespace (in Kubernetes: securityContext.sysctls)",
		Setting: "net.core.somaxconn", To: strconv.Itoa(to), Limit: reading.LimitSomaxconn, Command: phrase.Sprintf("sysctl -w net.core.somaxconn=%v", to),
	}
	if most, known := s.Sysctl["somaxconn"]; known {
		step.From = strconv.Itoa(most)
	}
	return step
}

// ListenStep has the server listen on another address; "" is not known.
func ListenStep(s *symptoms.Symptoms, text, to string) model.Step {
	step := model.Step{Text: text, Setting: "address", From: s.Now.ID.Address.Addr().String(), To: to}
	if s.Now.Connector != nil && s.Now.Connector.Framework == "spring-boot" {
		step.Setting = "server.address"
	}
	return step
}

// MissingAddressSteps are what to do about an address of the listener's that is not there.
func MissingAddressSteps(s *symptoms.Symptoms) []model.Step {
	all := "::"
	if s.Now.ID.Address.Addr().Is4() {
		all = "0.0.0.0"
	}
	return []model.Step{
		Command("See who has the address, if anybody", phrase.Sprintf("ip -br address; ip route get %v", s.Now.ID.Address.Addr())),
		ListenStep(s, "Give it back to an interface; or have the server listen on all addresses, or on one that is there, and restart", all),
	}
}

// LingerStep has what was written sent before a connection is closed.
func LingerStep() model.Step {
	return model.Step{Text: "Let the server send the rest of an answer before it closes (no SO_LINGER of 0), and restart", Setting: "connectionLinger", To: "-1"}
}

// FilesStep is there where the open-files limit must be raised for that many connections.
func FilesStep(s *symptoms.Symptoms, connections int) []model.Step {
	_, most, ok := reading.OpenFiles(s.Now)
	if _, seen := reading.SlotsInUse(s.Now); !ok || !seen {
		return nil
	}
	need := FilesNeeded(s.Now, connections)
	if need <= most {
		return nil
	}
	return []model.Step{RaiseFilesStep(most, need)}
}

// RaiseFilesStep raises the limit of open files.
func RaiseFilesStep(most, to int) model.Step {
	return model.Step{
		Text:    "Raise the open-files limit (LimitNOFILE= of the unit, the container's ulimits, or ulimit -n), and restart",
		Setting: "LimitNOFILE", From: strconv.Itoa(most), To: strconv.Itoa(to),
	}
}

// UnacknowledgedSteps are what to do about clients from which nothing comes back.
func UnacknowledgedSteps() []model.Step {
	return []model.Step{
		Command("See what these clients have in common: one network, or all responses that are large", "ss -tino state established"),
		Action("Where large packets alone are lost (a tunnel's or VPN's smaller MTU): net.ipv4.tcp_mtu_probing=1, or clamp the MSS"),
		Action("Where the clients are gone: have the application end a stream whose client does not answer; the kernel tries for some 15 minutes (net.ipv4.tcp_retries2)"),
	}
}

// TLSSteps are what to do where clients end their TLS handshakes.
func TLSSteps(s *symptoms.Symptoms) []model.Step {
	if s.OnPlainPort() {
		return []model.Step{Action("Have the clients ask by http://, or give the connector TLS (server.ssl, SSLEnabled): an https:// address or a balancer with TLS towards its backends leads here")}
	}
	return []model.Step{
		Action(phrase.Sprintf("See what a client finds, from its host, with the name that it asks for: openssl s_client -connect NAME:%v -servername NAME -verify_return_error -verify_hostname NAME", s.Now.Port)),
		Action("Expired, or for another name: give the server another certificate. Not the whole chain: have it send the intermediate certificates as well. Self-signed, or of an own authority: give that to the clients (a JVM's truststore, curl --cacert)"),
	}
}

// ForgottenSteps are what to do about a firewall that forgets idle connections.
func ForgottenSteps(s *symptoms.Symptoms) []model.Step {
	return []model.Step{
		Command("See how long their FIN has been repeated, and to which addresses", phrase.Sprintf("ss -tano state fin-wait-1 sport = :%v", s.Now.Port)),
		Action("Find the shortest idle timeout of what lies between (firewall, NAT, load balancer): a client's next request on a connection that was forgotten there has no answer"),
		Action(phrase.Sprintf("End idle connections before that: %s below it%s, or the idle timeout of the clients' pools", KeepAliveSetting().Name(s.Now), IdleTimeout(s))),
	}
}
