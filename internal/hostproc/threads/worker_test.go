package threads

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestIsWorker(t *testing.T) {
	ports := []uint16{8080, 18080}
	for name, want := range map[string]bool{
		"http-nio-8080-e": true, "http-nio-80-exe": false, "http-nio-8443-e": false,
		"http-nio-8080-A": false, "http-nio-8080-P": false, "http-nio-8080-C": false, "http-nio-8080-B": false,
		"http-nio-18080-": true, "https-jsse-nio-": false, "http-nio-127.0.": false,
		"http-nio2-8080-": true, "main": false, "C2 CompilerThre": false, "": false,
		"tomcat-exec-7": false, "HikariPool-1 ho": false,
	} {
		require.Equal(t, want, IsWorker(name, ports, nil), name)
	}
	shared := []string{"tomcat-exec-", "catalina-exec-"}
	require.True(t, IsWorker("tomcat-exec-7", ports, shared))
	require.True(t, IsWorker("catalina-exec-1", ports, shared))
	require.False(t, IsWorker("HikariPool-1 ho", ports, shared))
	require.True(t, IsWorker("shop-web-12", ports, []string{"shop-web-"}))
	require.True(t, IsWorker("http-nio-127.0.", ports, []string{"http-nio-127.0."}))
	require.True(t, IsWorker("orders-and-invo", ports, []string{"orders-and-invoices-"}), "cut after 15 characters")
	require.False(t, IsWorker("main", ports, []string{""}))
}
