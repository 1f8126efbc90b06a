package examine

import (
	"bufio"
	"io"
	"net/netip"
	"slices"
	"strings"

	"github.com/tcpdiag/tcpdiag/internal/discovery/springboot"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

const (
	hostsFile = "/etc/hosts"
	maxHosts  = 64 << 10 // bytes of it
	// maxOfHost bounds the addresses of one name.
	maxOfHost = 4
)

// backendsOf are the servers that an application's configuration names, with the
// addresses that this machine knows without asking anybody: literal ones, those
// of the process's own hosts file, and localhost.
func backendsOf(t *target, list []springboot.Backend) []model.Backend {
	var out []model.Backend
	var hosts map[string][]netip.Addr
	for _, b := range list {
		backend := model.Backend{Name: b.Name, Pool: b.Pool}
		for _, p := range b.Hosts {
			addresses := literal(p.Host)
			if addresses == nil {
				if hosts == nil {
					hosts = t.files.hosts()
				}
				addresses = hosts[strings.ToLower(p.Host)]
			}
			for _, a := range addresses {
				backend.At = append(backend.At, netip.AddrPortFrom(a, p.Port))
			}
			if len(addresses) == 0 && !slices.Contains(backend.Ports, p.Port) {
				backend.Ports = append(backend.Ports, p.Port)
			}
		}
		out = append(out, backend)
	}
	return out
}

func literal(host string) []netip.Addr {
	if a, err := netip.ParseAddr(host); err == nil && a.Zone() == "" {
		return []netip.Addr{a.Unmap()}
	}
	return nil
}

// hosts are the names of the process's hosts file. It is not among the files whose
// change is noticed: a container's is written whenever its pod is.
func (f *files) hosts() map[string][]netip.Addr {
	out := make(map[string][]netip.Addr)
	if f.root.err == nil {
		if file, err := f.root.Regular(hostsFile); err == nil {
			defer func() { _ = file.Close() }()
			out = parseHosts(io.LimitReader(file, maxHosts))
		}
	}
	if len(out["localhost"]) == 0 {
		out["localhost"] = []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()}
	}
	return out
}

// parseHosts reads a hosts file (hosts(5)): an address, its names, a comment.
func parseHosts(in io.Reader) map[string][]netip.Addr {
	out := make(map[string][]netip.Addr)
	for lines := bufio.NewScanner(in); lines.Scan(); {
		line, _, _ := strings.Cut(lines.Text(), "#")
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		for _, a := range literal(words[0]) {
			for _, name := range words[1:] {
				name = strings.ToLower(name)
				if list := out[name]; len(list) < maxOfHost && !slices.Contains(list, a) {
					out[name] = append(list, a)
				}
			}
		}
	}
	return out
}

// backends are those of a list with the pools' sizes edited.
func (e edit) backends(list []model.Backend) []model.Backend {
	out := slices.Clone(list)
	for i := range out {
		if p := out[i].Pool; p != nil {
			out[i].Pool = &model.Pool{Library: p.Library, Setting: p.Setting, Size: *edited(e, &p.Size)}
		}
	}
	return out
}
