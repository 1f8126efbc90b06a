package render

import (
	"net/netip"
	"strconv"
	"strings"

	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/render/term"
)

// Where is the address, or the port that nothing listens on.
func Where(l *model.Listener) string {
	if !l.Listening() {
		return "port " + strconv.Itoa(int(l.Port))
	}
	return term.Printable(l.ID.String())
}

// shortWhere is ":8080" where it listens on every address.
func shortWhere(l *model.Listener) string {
	a := l.ID.Address
	if l.Listening() && l.ID.Device == "" && (a.Addr() == netip.IPv6Unspecified() || a.Addr() == netip.IPv4Unspecified()) {
		return ":" + strconv.Itoa(int(a.Port()))
	}
	return Where(l)
}

// ownersOf are the pod, the process and the container, in the order in which a person looks for
// them. A pod's container is not named by its id.
func ownersOf(l *model.Listener) []string {
	if l.Pod != nil {
		return []string{podOf(l.Pod), ownerOf(l.Process)}
	}
	parts := []string{ownerOf(l.Process)}
	if p := l.Process; p != nil && p.Container != "" {
		parts = append(parts, "container "+term.Cut(term.Printable(p.Container), 12))
	}
	return parts
}

// podOf is "NAMESPACE/POD (CONTAINER)".
func podOf(p *model.Pod) string {
	if p.Container == "" {
		return term.Printable(p.String())
	}
	return term.Printable(p.String() + " (" + p.Container + ")")
}

func ownerOf(p *model.Process) string {
	if p == nil {
		return "owner not visible"
	}
	return term.Printable(p.Comm) + " " + strconv.Itoa(p.PID)
}

func serverOf(k *model.Connector) []string {
	var parts []string
	switch kind := k.Kind(); {
	case kind.Title != "":
		parts = append(parts, strings.TrimSpace(kind.Title+" "+term.Printable(k.Version)))
	case kind.JVM:
		parts = append(parts, "a JVM, no Tomcat recognised")
	}
	if k.Framework == "spring-boot" {
		parts = append(parts, strings.TrimSpace("Spring Boot "+term.Printable(k.FrameworkVersion)))
	}
	if k.Protocol != "" {
		parts = append(parts, term.Printable(k.Protocol))
	}
	if k.TLS {
		parts = append(parts, "TLS")
	}
	if k.HTTP2 {
		parts = append(parts, "HTTP/2")
	}
	if k.Executor != "" {
		parts = append(parts, "executor "+term.Printable(k.Executor))
	}
	return parts
}
