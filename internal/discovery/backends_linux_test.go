package discovery

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
)

// A process's own hosts file is read, not this machine's, and of a URL there
// leaves the child only where it leads.
func TestBackendsOfAProcess(t *testing.T) {
	nettest.Root(t)
	root := t.TempDir()
	write(t, filepath.Join(root, "etc/hosts"), "127.0.0.1 localhost\n203.0.113.7 db.shop db\n")
	fatJar(t, filepath.Join(root, "srv/app.jar"), "spring.datasource.url=jdbc:postgresql://app:s3cret@DB,unknown:6432/orders?password=s3cret\n"+
		"spring.datasource.hikari.maximum-pool-size=${SIZE}\nspring.data.redis.host=localhost\n")
	s := startFake(t, fake{Chroot: root, Dir: "/srv", args: []string{"java", "-jar", "app.jar"}, env: []string{"SIZE=13"}})
	c, unavailable := only(t, inChildren(t), s, 8080)
	require.Empty(t, unavailable)
	require.Equal(t, []model.Backend{
		{
			Name: "orders", At: []netip.AddrPort{netip.MustParseAddrPort("203.0.113.7:5432")}, Ports: []uint16{6432},
			Pool: &model.Pool{Library: "HikariCP", Setting: "spring.datasource.hikari.maximum-pool-size", Size: model.Setting[int]{
				Value: 13, Kind: model.SourceFile, Source: "application.properties in app.jar",
			}},
		},
		{Name: "redis", At: []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:6379")}},
	}, c.Backends)
	require.NotContains(t, fmt.Sprintf("%+v", c), "s3cret")
}
