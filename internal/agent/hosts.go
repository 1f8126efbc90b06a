package agent

import (
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strings"
)

// ownHost keeps pages of other sites from reading the agent by DNS rebinding: a browser that
// was sent to an attacker's name, which then resolves to the agent's address, takes both for
// one origin. So a browser is served under names that no stranger can have in public DNS:
// addresses, localhost, the machine's name, names without a dot and those of a cluster's
// services, and what allowed adds. Programs that are no browsers may use any name, and a name
// that a TLS certificate was checked against is the agent's.
func ownHost(allowed []string, h http.Handler) http.Handler {
	own, err := os.Hostname()
	if err == nil {
		allowed = append(slices.Clone(allowed), own)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.TLS == nil && fromBrowser(r) && !isOwnHost(r.Host, allowed) {
			reply(w, http.StatusMisdirectedRequest, "tcpdiag does not serve a browser under this name: use the address, or start the agent with --web.allowed-host NAME\n")
			return
		}
		h.ServeHTTP(w, r)
	})
}

// fromBrowser: a page can change the values of these headers, and cannot leave
// Accept-Language away (Fetch Standard, HTTP-network-or-cache fetch).
func fromBrowser(r *http.Request) bool {
	for _, name := range []string{"Accept-Language", "Origin", "Referer", "Sec-Fetch-Mode", "Sec-Fetch-Site"} {
		if _, ok := r.Header[name]; ok {
			return true
		}
	}
	return strings.HasPrefix(r.UserAgent(), "Mozilla/")
}

func isOwnHost(host string, allowed []string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	name = strings.ToLower(strings.TrimSuffix(strings.Trim(name, "[]"), "."))
	if _, err := netip.ParseAddr(name); err == nil || !strings.Contains(name, ".") {
		return true
	}
	for _, end := range []string{".localhost", ".svc", ".svc.cluster.local"} {
		if strings.HasSuffix(name, end) {
			return true
		}
	}
	return slices.ContainsFunc(allowed, func(a string) bool { return strings.EqualFold(name, strings.TrimSuffix(a, ".")) })
}
