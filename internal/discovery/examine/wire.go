package examine

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/netip"
	"net/url"
	"slices"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/discovery/catalina"
	"github.com/tcpdiag/tcpdiag/internal/discovery/match"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// Bounds of an answer. What is beyond them is left out by who answers, and makes
// the answer invalid for who asked.
const (
	maxAnswer      = 256 << 10 // bytes
	maxConnectorsN = 64
	maxStamps      = 512
	maxJVMPorts    = 16
	maxText        = 512 // bytes of a name, a source, a reason
)

// errAnswer is an answer that is not what it must be. Its text says what is
// wrong, and repeats nothing of it.
var errAnswer = errors.New("invalid answer")

// answer is an Examination as the process that made it writes it: every field
// has a type, a bound and a check of its own.
type answer struct {
	Known       bool
	Server      string
	Version     catalina.Version
	Management  string
	Connectors  []wireConnector
	Backends    []wireBackend `json:",omitempty"`
	Missing     []model.Unavailable
	Unavailable []model.Unavailable
	Files       []fileStamp
	Numbers     []uint16
	JVMPorts    []uint16 `json:",omitempty"`
	Failure     string   // why there is nothing else
}

// wireConnector is a catalina.Connector without what only the live process shows.
type wireConnector struct {
	Port                         uint16
	Address                      netip.Addr
	Scheme, Endpoint, NamePrefix string
	Line                         int

	Server, Framework, Version, FrameworkVersion, Protocol, Executor string
	TLS, HTTP2                                                       bool

	MaxConnections, AcceptCount, MaxThreads, MinSpareThreads, MaxQueue, MaxKeepAliveRequests, Gate *model.Setting[int]
	ConnectionTimeout, KeepAliveTimeout                                                            *model.Setting[time.Duration]
	VirtualThreads                                                                                 *model.Setting[bool]
}

func newWireConnector(c *catalina.Connector) wireConnector {
	return wireConnector{
		c.Port, c.Address, c.Scheme, c.Endpoint, c.NamePrefix, c.Line,
		c.Server, c.Framework, c.Version, c.FrameworkVersion, c.Protocol, c.Executor, c.TLS, c.HTTP2,
		c.MaxConnections, c.AcceptCount, c.MaxThreads, c.MinSpareThreads, c.MaxQueue, c.MaxKeepAliveRequests, c.Gate,
		c.ConnectionTimeout, c.KeepAliveTimeout, c.VirtualThreads,
	}
}

func (w *wireConnector) connector() catalina.Connector {
	return catalina.Connector{
		Port: w.Port, Address: w.Address, Scheme: w.Scheme, Endpoint: w.Endpoint, NamePrefix: w.NamePrefix, Line: w.Line,
		Connector: model.Connector{
			Server: w.Server, Framework: w.Framework, Version: w.Version, FrameworkVersion: w.FrameworkVersion,
			Protocol: w.Protocol, Executor: w.Executor, TLS: w.TLS, HTTP2: w.HTTP2,
			MaxConnections: w.MaxConnections, AcceptCount: w.AcceptCount, MaxThreads: w.MaxThreads,
			MinSpareThreads: w.MinSpareThreads, MaxQueue: w.MaxQueue, MaxKeepAliveRequests: w.MaxKeepAliveRequests, Gate: w.Gate,
			ConnectionTimeout: w.ConnectionTimeout, KeepAliveTimeout: w.KeepAliveTimeout, VirtualThreads: w.VirtualThreads,
		},
	}
}

// encode writes an examination within the bounds.
func (e *Examination) encode() ([]byte, error) {
	a := answer{
		Known: e.Known, Server: e.Found.Server, Version: e.Found.Version, Management: clean(e.Found.Management),
		Numbers:  e.Numbers[:min(len(e.Numbers), maxNumbers)],
		JVMPorts: portsOfJVM(&e.Found), Backends: newWireBackends(e.Found.Backends),
		Missing: cleanList(Bounded(e.pid, e.Missing)), Unavailable: cleanList(Bounded(e.pid, e.Found.Unavailable)),
	}
	for i := range e.Found.Connectors[:min(len(e.Found.Connectors), maxConnectorsN)] {
		w := newWireConnector(&e.Found.Connectors[i])
		w.each(func(s *string) { *s = clean(*s) })
		a.Connectors = append(a.Connectors, w)
	}
	for _, f := range e.files {
		if len(a.Files) < maxStamps && f.Name == clean(f.Name) {
			a.Files = append(a.Files, f)
		}
	}
	text, err := json.Marshal(a)
	if err == nil && len(text) > maxAnswer {
		a.Files = nil // changes of them go unnoticed
		text, err = json.Marshal(a)
	}
	return text, err
}

// portsOfJVM are the JVM's own ports, in order.
func portsOfJVM(f *match.Found) []uint16 {
	ports := slices.Sorted(maps.Keys(f.JVMPorts))
	return ports[:min(len(ports), maxJVMPorts)]
}

// decode reads an answer. The writer may have become another program by now.
func decode(in io.Reader) (*Examination, error) {
	text, err := io.ReadAll(io.LimitReader(in, maxAnswer+1))
	switch {
	case err != nil:
		return nil, err
	case len(text) > maxAnswer:
		return nil, fmt.Errorf("%w: more than %d bytes", errAnswer, maxAnswer)
	case len(text) == 0:
		return nil, fmt.Errorf("%w: it is empty", errAnswer)
	}
	var a answer
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if d.Decode(&a) != nil {
		return nil, fmt.Errorf("%w: not of the form agreed on", errAnswer)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%w: something follows it", errAnswer)
	}
	if err := a.check(); err != nil {
		return nil, err
	}
	if a.Failure != "" {
		return nil, errors.New(a.Failure)
	}
	return a.examination(), nil
}

func (a *answer) examination() *Examination {
	e := &Examination{
		Known: a.Known, Missing: a.Missing, files: a.Files, Numbers: a.Numbers,
		Found: match.Found{Server: a.Server, Version: a.Version, Management: a.Management, Unavailable: a.Unavailable},
	}
	for _, port := range a.JVMPorts {
		if e.Found.JVMPorts == nil {
			e.Found.JVMPorts = make(map[uint16]bool, len(a.JVMPorts))
		}
		e.Found.JVMPorts[port] = true
	}
	for i := range a.Backends {
		e.Found.Backends = append(e.Found.Backends, a.Backends[i].backend())
	}
	for i := range a.Connectors {
		e.Found.Connectors = append(e.Found.Connectors, a.Connectors[i].connector())
	}
	return e
}

// each calls fn with every text of a connector.
func (w *wireConnector) each(fn func(*string)) {
	for _, s := range []*string{
		&w.Scheme, &w.Endpoint, &w.NamePrefix, &w.Server, &w.Framework, &w.Version, &w.FrameworkVersion, &w.Protocol, &w.Executor,
	} {
		fn(s)
	}
	for _, s := range []**model.Setting[int]{
		&w.MaxConnections, &w.AcceptCount, &w.MaxThreads, &w.MinSpareThreads, &w.MaxQueue, &w.MaxKeepAliveRequests, &w.Gate,
	} {
		eachText(s, fn)
	}
	eachText(&w.ConnectionTimeout, fn)
	eachText(&w.KeepAliveTimeout, fn)
	eachText(&w.VirtualThreads, fn)
}

// eachText gives fn the texts of a copy.
func eachText[T any](s **model.Setting[T], fn func(*string)) {
	if *s == nil {
		return
	}
	*s = new(**s)
	fn(&(*s).Source)
	fn(&(*s).Note)
}

func (a *answer) check() error {
	_, known := model.ServerNamed(a.Server)
	switch {
	case len(a.Connectors) > maxConnectorsN, len(a.Missing) > MaxUnavailable+1, len(a.Unavailable) > MaxUnavailable+1, len(a.Files) > maxStamps, len(a.Numbers) > maxNumbers, len(a.JVMPorts) > maxJVMPorts:
		return fmt.Errorf("%w: too many entries", errAnswer)
	case a.Failure == "" && !known:
		return fmt.Errorf("%w: no such kind of server", errAnswer)
	case !plainURL(a.Management):
		return fmt.Errorf("%w: the address of Actuator", errAnswer)
	case a.Version.Major < 0 || a.Version.Minor < 0 || a.Version.Patch < 0 || a.Version.Milestone < 0:
		return fmt.Errorf("%w: the version", errAnswer)
	}
	if err := checkBackends(a.Backends); err != nil {
		return err
	}
	texts := []string{a.Failure}
	for _, u := range append(a.Missing, a.Unavailable...) {
		texts = append(texts, u.What, u.Why, u.How)
	}
	for i := range a.Connectors {
		if err := a.Connectors[i].check(); err != nil {
			return err
		}
		a.Connectors[i].each(func(s *string) { texts = append(texts, *s) })
	}
	for _, f := range a.Files {
		texts = append(texts, f.Name, f.Content)
	}
	for _, text := range texts {
		if text != clean(text) {
			return fmt.Errorf("%w: a text is too long or has control characters", errAnswer)
		}
	}
	return nil
}

// check holds a connector's numbers to what a server can have.
func (w *wireConnector) check() error {
	for _, s := range []*model.Setting[int]{
		w.MaxConnections, w.AcceptCount, w.MaxThreads, w.MinSpareThreads, w.MaxQueue, w.MaxKeepAliveRequests, w.Gate,
	} {
		if s != nil && (s.Value < -1<<31 || s.Value > 1<<31-1 || !knownKind(s.Kind)) {
			return fmt.Errorf("%w: a limit out of range", errAnswer)
		}
	}
	for _, s := range []*model.Setting[time.Duration]{w.ConnectionTimeout, w.KeepAliveTimeout} {
		if s != nil && !knownKind(s.Kind) {
			return fmt.Errorf("%w: a source", errAnswer)
		}
	}
	server, _ := model.ServerNamed(w.Server)
	switch {
	case w.VirtualThreads != nil && !knownKind(w.VirtualThreads.Kind):
		return fmt.Errorf("%w: a source", errAnswer)
	case w.Server != "" && !server.Limits:
		return fmt.Errorf("%w: no such kind of server", errAnswer)
	case w.Line < 0 || w.Address.Zone() != "":
		return fmt.Errorf("%w: a connector's place", errAnswer)
	}
	return nil
}

// plainURL says that an address is what this package makes: http, a literal
// address, a port, a path.
func plainURL(text string) bool {
	if text == "" {
		return true
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || text != clean(text) {
		return false
	}
	_, err = netip.ParseAddrPort(u.Host)
	return err == nil
}
