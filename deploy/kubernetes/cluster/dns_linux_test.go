package cluster

import (
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/dns/dnsmessage"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// nodeAddress is the bridge's: the pods' way to what the node itself serves.
const nodeAddress = "10.88.0.1"

// serveDNS answers what a cluster's DNS answers of headless Services: NAME.NAMESPACE.svc.cluster.local.
func (c *cluster) serveDNS(t *testing.T) {
	t.Helper()
	conn, err := net.ListenPacket("udp", nodeAddress+":53")
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	go func() {
		buf := make([]byte, 1500)
		for {
			n, from, err := conn.ReadFrom(buf)
			if err != nil {
				return
			}
			if answer, err := c.resolve(t, buf[:n]); err == nil {
				_, _ = conn.WriteTo(answer, from)
			}
		}
	}()
}

func (c *cluster) resolve(t *testing.T, question []byte) ([]byte, error) {
	var m dnsmessage.Message
	if err := m.Unpack(question); err != nil {
		return nil, err
	}
	m.Response, m.Authoritative, m.RCode, m.Additionals = true, true, dnsmessage.RCodeNameError, nil
	for _, q := range m.Questions {
		parts := strings.Split(q.Name.String(), ".")
		if len(parts) != 6 || strings.Join(parts[2:], ".") != "svc.cluster.local." {
			continue
		}
		slices, err := c.client.DiscoveryV1().EndpointSlices(parts[1]).List(t.Context(), meta.ListOptions{LabelSelector: "kubernetes.io/service-name=" + parts[0]})
		if err != nil || len(slices.Items) == 0 {
			continue
		}
		m.RCode = dnsmessage.RCodeSuccess
		for _, s := range slices.Items {
			for _, e := range s.Endpoints {
				if a, err := netip.ParseAddr(e.Addresses[0]); err == nil && q.Type == dnsmessage.TypeA && *e.Conditions.Ready {
					m.Answers = append(m.Answers, dnsmessage.Resource{
						Header: dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class, TTL: 1},
						Body:   &dnsmessage.AResource{A: a.As4()},
					})
				}
			}
		}
	}
	return m.Pack()
}
