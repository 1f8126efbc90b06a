package schedule

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
)

// A listener whose address is removed is said to be out of reach: as a warning where it had clients, but not on a standby,
// which may be bound to an address that another machine has.
func TestListenersAddressIsRemoved(t *testing.T) {
	const address = "203.0.113.7"
	now := time.Now()
	later := func(o *Options) { o.Now = func() time.Time { return now } }
	l := newLab(t, later)
	ip := func(args ...string) {
		t.Helper()
		out, err := l.Command("ip", append([]string{"address"}, args...)...).CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	look := func(s *lab) *model.Listener {
		t.Helper()
		s.scan(t)
		now = now.Add(time.Minute)
		return only(t, s.scan(t))
	}
	said := func(l *model.Listener) (level model.Severity, ok bool) {
		for _, f := range l.Verdict.Findings {
			if f.Code == "address_missing" {
				return f.Severity, true
			}
		}
		return "", false
	}
	ip("add", address+"/32", "dev", "lo")
	server := l.listen(t, nettest.ListenOptions{Address: net.JoinHostPort(address, "0"), Backlog: 5})
	l.queue(t, server.Addr, 1)
	served := server.Accept(t, 1)
	require.Nil(t, look(l).AddressMissing)

	ip("del", address+"/32", "dev", "lo")
	got := look(l)
	require.Equal(t, &model.AddressMissing{HadClients: true}, got.AddressMissing)
	require.Equal(t, model.StatusWarning, got.Verdict.Status, got.Verdict.Summary)
	require.Contains(t, got.Verdict.Summary, "Clients cannot reach it at 203.0.113.7")
	require.Contains(t, got.Verdict.Answer.What, "Clients cannot reach it at 203.0.113.7")
	require.NotEmpty(t, got.Verdict.Answer.Do)
	level, _ := said(got)
	require.Equal(t, model.SeverityWarning, level)

	for _, c := range served {
		require.NoError(t, c.Close())
	}
	require.Equal(t, model.StatusWarning, look(l).Verdict.Status, "it had clients")

	late := &lab{NS: l.NS, pid: l.pid, faults: newFaults()} // knows of none
	late.Scheduler = late.sampler(t, later)
	got = look(late)
	require.Equal(t, &model.AddressMissing{}, got.AddressMissing)
	require.Equal(t, model.StatusOK, got.Verdict.Status)
	require.Contains(t, got.Verdict.Summary, "Clients cannot reach it at 203.0.113.7")
	level, _ = said(got)
	require.Equal(t, model.SeverityInfo, level)

	l.Sysctl(t, "net.ipv4.ip_nonlocal_bind", "1")
	got = look(l)
	require.Equal(t, &model.AddressMissing{HadClients: true, Standby: true}, got.AddressMissing)
	require.Equal(t, model.StatusOK, got.Verdict.Status)
	level, _ = said(got)
	require.Equal(t, model.SeverityInfo, level)

	l.Sysctl(t, "net.ipv4.ip_nonlocal_bind", "0")
	server.Close()
	for _, tt := range []struct {
		options nettest.ListenOptions
		want    *model.AddressMissing
	}{
		{nettest.ListenOptions{Freebind: true}, &model.AddressMissing{Standby: true}},
		{nettest.ListenOptions{Transparent: true}, nil}, // is given what goes to others
	} {
		tt.options.Address, tt.options.Backlog = net.JoinHostPort(address, "0"), 5
		server = l.listen(t, tt.options)
		require.Equal(t, tt.want, look(l).AddressMissing, "%+v", tt.options)
		server.Close()
	}

	ip("add", address+"/32", "dev", "lo")
	l.listen(t, nettest.ListenOptions{Address: net.JoinHostPort(address, "0"), Backlog: 5})
	got = look(l)
	require.Nil(t, got.AddressMissing)
	_, ok := said(got)
	require.False(t, ok)
}
