package springboot

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/discovery/springboot/properties"
	"github.com/tcpdiag/tcpdiag/internal/discovery/springboot/version"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// Settings are the values that Spring Boot gives its embedded Tomcat. One that
// cannot be known is nil, with an entry in Unavailable.
type Settings struct {
	Port           *model.Setting[int] // 0: a free port drawn at start; -1: no server
	Address        *model.Setting[string]
	ManagementPort *model.Setting[int] // nil: the same as Port

	MaxConnections       *model.Setting[int]
	AcceptCount          *model.Setting[int]
	MaxThreads           *model.Setting[int]
	MinSpareThreads      *model.Setting[int]
	MaxQueue             *model.Setting[int]
	MaxKeepAliveRequests *model.Setting[int]
	ConnectionTimeout    *model.Setting[time.Duration] // < 0: none
	KeepAliveTimeout     *model.Setting[time.Duration]

	TLS            *model.Setting[bool]
	HTTP2          *model.Setting[bool]
	VirtualThreads *model.Setting[bool]

	Unavailable []model.Unavailable
}

// settings collects them.
type settings struct {
	e    *Environment
	v    version.Number
	lost []model.Unavailable
}

// Settings converts the values as Spring's Binder does and applies the rules
// of TomcatWebServerFactoryCustomizer, which ignores limits that are not positive.
func (e *Environment) Settings() Settings {
	s := &settings{e: e, v: version.Parse(e.boot)}
	out := Settings{
		Port:                 s.port(),
		Address:              s.address(),
		ManagementPort:       s.optionalNumber(managementPortName),
		MaxConnections:       s.number(maxConnectionsName, true),
		AcceptCount:          s.number(acceptCountName, true),
		MaxThreads:           s.number(threadsMaxName, true, "server.tomcat.max-threads"),
		MinSpareThreads:      s.number(threadsMinName, true, "server.tomcat.min-spare-threads"),
		MaxQueue:             s.number(maxQueueName, true),
		MaxKeepAliveRequests: s.number(keepAliveReqName, false),
		ConnectionTimeout:    s.connectionTimeout(),
		HTTP2:                s.flag(http2Name),
		TLS:                  s.tls(),
	}
	note(out.MaxThreads, s.dead("server.tomcat.max-threads", threadsMaxName))
	note(out.MinSpareThreads, s.dead("server.tomcat.min-spare-threads", threadsMinName))
	note(out.ConnectionTimeout, s.dead("server.connection-timeout", connTimeoutName))
	out.KeepAliveTimeout = s.keepAliveTimeout(out.ConnectionTimeout)
	if least, most := out.MinSpareThreads, out.MaxThreads; least != nil && most != nil && least.Value > most.Value {
		// AbstractEndpoint.getMinSpareThreads
		least.Note = join(least.Note, fmt.Sprintf("%d is set, but Tomcat keeps no more than the maximum", least.Value))
		least.Value = most.Value
	}
	out.VirtualThreads = s.virtualThreads()
	if out.VirtualThreads != nil && out.VirtualThreads.Value && out.MaxThreads != nil {
		out.MaxThreads.Note = join(out.MaxThreads.Note, "has no effect: requests run on virtual threads")
	}
	out.Unavailable = s.lost
	return out
}

// get looks a property up under its name, and under the older names that this
// version of Spring Boot still knows.
func (s *settings) get(name string, older ...string) (Value, bool, error) {
	for _, n := range append([]string{name}, older...) {
		if !s.binds(n) {
			continue
		}
		v, ok, err := s.e.Get(n)
		if ok || err != nil {
			return v, ok, err
		}
	}
	return Value{}, false, nil
}

// binds says whether this version of Spring Boot has the property at all; one
// that it does not know is ignored without a word.
func (s *settings) binds(name string) bool {
	span, ok := spans()[name]
	return !ok || !s.v.Known() || s.v.AtLeast(span.from[:]...) && (!span.until.Known() || !s.v.AtLeast(span.until[:]...))
}

// fallback is the default as a setting, or nil where a file that could not be
// read may hold another value.
func fallback[T any](s *settings, value T) *model.Setting[T] {
	if s.e.headless {
		return nil
	}
	return &model.Setting[T]{Value: value, Kind: model.SourceDefault, Source: s.defaultSource(), Note: s.doubt(), Uncertain: s.doubt() != ""}
}

// dead is said of a line of the configuration that this version ignores without a word:
// the property has another name by now. "" where there is none.
func (s *settings) dead(name, now string) string {
	if s.binds(name) || !s.binds(now) {
		return ""
	}
	v, ok, err := s.e.Get(name)
	if !ok || err != nil {
		return ""
	}
	return fmt.Sprintf("%s=%s from %s has no effect: Spring Boot %s ignores it, the property is %s", name, v.Text, v.Source, s.e.boot, now)
}

func note[T any](s *model.Setting[T], text string) {
	if s != nil && text != "" {
		s.Note = join(s.Note, text)
	}
}

// doubt is the note of a value that a file or an import would override which
// could not be read. That the environment could not be read is for the caller
// to add: it knows why.
func (s *settings) doubt() string {
	switch n := len(s.e.unread); {
	case n == 0:
		return ""
	case n > 1:
		return fmt.Sprintf("uncertain: %s and %d more could not be read and may say otherwise", s.e.unread[0], n-1)
	}
	return "uncertain: " + s.e.unread[0] + " could not be read and may say otherwise"
}

func (s *settings) defaultSource() string {
	source := "default"
	if s.e.boot != "" {
		source += " of Spring Boot " + s.e.boot
	}
	if s.e.tomcat != "" {
		source += " (Tomcat " + s.e.tomcat + ")"
	}
	return source
}

// integral is the text to convert: a floating point number loses its fraction
// (NumberUtils.convertNumberToTargetClass).
func (v Value) integral() string {
	if !v.float {
		return v.Text
	}
	x, err := strconv.ParseFloat(v.Text, 64)
	if err != nil || math.Abs(x) > math.MaxInt32 {
		return v.Text
	}
	return strconv.Itoa(int(x))
}

// setting is a converted value, or nil and a word about why it is not known.
func setting[T any](s *settings, name string, v Value, err error, convert func(string) (T, error)) *model.Setting[T] {
	var value T
	if err == nil {
		value, err = convert(v.integral())
	}
	if err != nil {
		s.lost = append(s.lost, model.Unavailable{What: name + " from " + v.Source, Why: err.Error()})
		return nil
	}
	out := &model.Setting[T]{Value: value, Kind: v.Kind, Source: v.Source}
	if v.Kind == model.SourceFile {
		out.Note = s.doubt()
		out.Uncertain = out.Note != ""
	}
	return out
}

// number is an integer with a default. With positive, values below one are
// ignored and the default stays. An empty text is none: Spring fails on it.
func (s *settings) number(name string, positive bool, older ...string) *model.Setting[int] {
	v, ok, err := s.get(name, older...)
	standard := fallback(s, defaultOf(name, s.v))
	if !ok {
		return standard
	}
	n := setting(s, name, v, err, parseInt)
	if n != nil && positive && n.Value <= 0 {
		if standard == nil {
			return nil
		}
		standard.Note = fmt.Sprintf("%s=%d from %s is ignored by Spring Boot, which passes on only what is above 0",
			name, n.Value, n.Source)
		return standard
	}
	return n
}

func (s *settings) port() *model.Setting[int] {
	v, ok, err := s.get(portName)
	if !ok || err == nil && strings.TrimSpace(v.Text) == "" {
		return fallback(s, defaultOf(portName, s.v))
	}
	return setting(s, portName, v, err, parseInt)
}

// optionalNumber is an integer without a default.
func (s *settings) optionalNumber(name string) *model.Setting[int] {
	v, ok, err := s.get(name)
	if !ok || err == nil && strings.TrimSpace(v.Text) == "" {
		return nil
	}
	return setting(s, name, v, err, parseInt)
}

func (s *settings) address() *model.Setting[string] {
	v, ok, err := s.get(addressName)
	if !ok || err == nil && strings.TrimSpace(v.Text) == "" {
		return nil
	}
	return setting(s, addressName, v, err, func(text string) (string, error) { return text, nil })
}

// flag is a boolean with a default. An empty text is none: Spring fails on it.
func (s *settings) flag(name string) *model.Setting[bool] {
	v, ok, err := s.get(name)
	if !ok {
		return fallback(s, false)
	}
	return setting(s, name, v, err, parseBool)
}

// connectionTimeout is how long Tomcat waits for a request's first byte.
func (s *settings) connectionTimeout() *model.Setting[time.Duration] {
	v, ok, err := s.get(connTimeoutName, "server.connection-timeout")
	if !ok || err == nil && strings.TrimSpace(v.Text) == "" {
		return fallback(s, scaled(int64(defaultOf(connTimeoutName, s.v)), time.Millisecond))
	}
	return setting(s, connTimeoutName, v, err, parseDuration)
}

// keepAliveTimeout is connectionTimeout when it is not set (AbstractEndpoint.getKeepAliveTimeout).
func (s *settings) keepAliveTimeout(connection *model.Setting[time.Duration]) *model.Setting[time.Duration] {
	v, ok, err := s.get(keepAliveName)
	if ok && (err != nil || strings.TrimSpace(v.Text) != "") {
		return setting(s, keepAliveName, v, err, parseDuration)
	}
	if connection == nil {
		return nil
	}
	same := *connection
	same.Note = join(same.Note, "the connection timeout, as it is not set itself")
	return &same
}

// tls is on when any server.ssl property is there and enabled does not say no
// (Ssl.isEnabled).
func (s *settings) tls() *model.Setting[bool] {
	v, ok, err := s.get(sslName + ".enabled")
	if ok {
		return setting(s, sslName+".enabled", v, err, parseBool)
	}
	for _, d := range s.e.docs {
		for _, name := range d.Names {
			key := properties.Uniform(name)
			if d.Env {
				key = properties.UniformEnv(name)
			}
			if strings.HasPrefix(key, sslName+".") {
				return &model.Setting[bool]{Value: true, Kind: d.Kind, Source: d.Source(name)}
			}
		}
	}
	return fallback(s, false)
}

// virtualThreads needs Spring Boot 3.2 and Java 21 (Threading.VIRTUAL).
func (s *settings) virtualThreads() *model.Setting[bool] {
	if s.v.Known() && !s.v.AtLeast(3, 2) {
		return fallback(s, false)
	}
	f := s.flag(virtualName)
	if f == nil || !f.Value {
		return f
	}
	if s.e.java == "" {
		s.lost = append(s.lost, model.Unavailable{
			What: "virtual threads", Why: virtualName + " is set, but only Java 21 or newer heeds it, and the JVM's version is not known",
			How: "run as the process's user, so that hsperfdata or the JVM's release file can be read",
		})
		return nil
	}
	if !version.Parse(strings.TrimPrefix(s.e.java, "1.")).AtLeast(21) {
		f.Value = false
		f.Note = "set, but without effect: Java " + s.e.java + " has no virtual threads"
	}
	return f
}

func join(a, b string) string {
	if a == "" {
		return b
	}
	return a + "; " + b
}
