package springboot

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/test/mutate"
)

// The forms of each driver's manual.
func TestParseJDBC(t *testing.T) {
	tests := map[string]string{
		"jdbc:postgresql://db.shop:6432/orders?user=a&password=p@ss":                 "orders db.shop:6432",
		"jdbc:postgresql://10.0.3.7/orders":                                          "orders 10.0.3.7:5432",
		"jdbc:postgresql://[fd00::7]:5433,[fd00::8]/orders?targetServerType=primary": "orders fd00::7:5433 fd00::8:5432",
		"jdbc:postgresql:orders?user=a":                                              "orders localhost:5432",
		"jdbc:postgresql:///orders":                                                  "orders localhost:5432",
		"jdbc:postgresql://db":                                                       "postgresql db:5432",
		"jdbc:postgresql://db/my%20orders":                                           "postgresql db:5432",
		"jdbc:mysql://root:secret@db:3307/shop?useSSL=false":                         "shop db:3307",
		"jdbc:mysql:replication://primary,replica:3308/shop":                         "shop primary:3306 replica:3308",
		"jdbc:mariadb:sequential://a,b/shop":                                         "shop a:3306 b:3306",
		"jdbc:oracle:thin:scott/tiger@db:1521:ORCL":                                  "ORCL db:1521",
		"jdbc:oracle:thin:@db:1522/sales.example.com:dedicated/inst1":                "sales.example.com db:1522",
		"jdbc:oracle:thin:@//db/sales":                                               "sales db:1521",
		"jdbc:oracle:thin:@tcps://db:2484/sales?wallet_location=/secret":             "sales db:2484",
		"jdbc:sqlserver://db:1444;encrypt=true;databaseName=shop;password=p":         "shop db:1444",
		"jdbc:sqlserver://db;portNumber=1445;database=shop":                          "shop db:1445",
		"jdbc:sqlserver://db\\inst:1446;password=p":                                  "sqlserver db:1446",
		"jdbc:sqlserver://db:1433;password={a;databaseName=secret}":                  "sqlserver db:1433",
		"jdbc:sqlserver://db\\inst;databaseName=shop":                                "", // its port is another service's to tell
		"jdbc:sqlserver://;serverName=db":                                            "",
		"jdbc:oracle:thin:@(DESCRIPTION=(ADDRESS=(HOST=db)(PORT=1521)))":             "",
		"jdbc:oracle:thin:@orders_high":                                              "",
		"jdbc:oracle:oci:@db:1521:ORCL":                                              "",
		"jdbc:mysql://address=(host=db)(port=1)/shop":                                "",
		"jdbc:mysql+srv://db/shop":                                                   "",
		"jdbc:h2:mem:shop":                                                           "",
		"postgresql://db/shop":                                                       "",
		"":                                                                           "",
		"jdbc:":                                                                      "",
		"jdbc:postgresql://db:0/shop":                                                "",
		"jdbc:postgresql://db:65536/shop":                                            "",
		"jdbc:postgresql://db:-1/shop":                                               "",
		"jdbc:postgresql://fe80::1%eth0/shop":                                        "",
		"jdbc:postgresql://[fe80::1%25eth0]/shop":                                    "",
		"jdbc:postgresql://[::1/shop":                                                "",
		"jdbc:postgresql://a,,b/shop":                                                "",
		"jdbc:postgresql://" + strings.Repeat("a,", maxHosts) + "b/shop":             "",
		"jdbc:postgresql://" + strings.Repeat("a", 254) + "/shop":                    "",
		"jdbc:postgresql://db/shop?" + strings.Repeat("x", maxURL):                   "",
		"jdbc:postgresql://d\x1b[31mb/shop":                                          "",
		"jdbc:postgresql://db/sh\u202eop":                                            "postgresql db:5432",
		"jdbc:postgresql://db/" + strings.Repeat("x", 65):                            "postgresql db:5432",
	}
	for url, want := range tests {
		at, ok := parseJDBC(url)
		require.Equal(t, want != "", ok, url)
		if ok {
			require.Equal(t, want, at.String(), url)
		}
	}
}

// String is for comparisons.
func (e endpoint) String() string {
	out := e.name
	for _, p := range e.hosts {
		out += fmt.Sprintf(" %s:%d", p.Host, p.Port)
	}
	return out
}

func TestParseR2DBCAndRedis(t *testing.T) {
	at, ok := parseR2DBC("r2dbc:postgresql://user:secret@db:6432/orders?sslMode=require")
	require.True(t, ok)
	require.Equal(t, "orders db:6432", at.String())
	require.False(t, at.pooled)
	at, ok = parseR2DBC("r2dbcs:pool:mssql://db/orders?maxSize=3")
	require.True(t, ok)
	require.Equal(t, "orders db:1433", at.String())
	require.True(t, at.pooled)
	at, ok = parseRedis("rediss://user:secret@cache/3")
	require.True(t, ok)
	require.Equal(t, "redis cache:6379", at.String())
	for _, url := range []string{"r2dbc:h2:mem:///x", "r2dbc:postgresql", "r2dbc:postgresql:///orders", "jdbc:postgresql://db/x"} {
		_, ok := parseR2DBC(url)
		require.False(t, ok, url)
	}
	for _, url := range []string{"redis://", "redis-socket:///run/redis", "http://cache"} {
		_, ok := parseRedis(url)
		require.False(t, ok, url)
	}
}

// A password with the characters that end a part of a URL does not pass for a host
// or a database.
func TestSecretsStay(t *testing.T) {
	for _, url := range []string{
		"jdbc:mysql://u:%s@db/shop", "jdbc:mysql://%s@db/shop", "jdbc:mysql://u:%s@db,u:%s@db2/shop",
		"jdbc:mariadb://u:%s@db/shop?password=%s", "jdbc:postgresql://db/shop?password=%s", "jdbc:postgresql:shop?password=%s",
		"jdbc:oracle:thin:scott/%s@db:1521:ORCL", "jdbc:oracle:thin:scott/%s@//db/sales",
		"jdbc:sqlserver://db;password=%s;databaseName=shop", "jdbc:sqlserver://db;password={%s};databaseName=shop",
	} {
		for _, secret := range []string{"hunter2", "hunter2@x", "a/hunter2", "12/hunter2", "a?hunter2", "a#hunter2", "a:hunter2", "hunter2,b", "[hunter2]", "hunter2%%40", "x@hunter2/y"} {
			text := fmt.Sprintf(strings.ReplaceAll(url, "%s", "%[1]s"), secret)
			if at, ok := parseJDBC(text); ok {
				require.NotContains(t, at.String(), "hunter2", text)
			}
		}
	}
}

// Whatever stands in a property: hosts, ports and names within their bounds.
func FuzzBackendURL(f *testing.F) {
	m := mutate.Into(f)
	m.Add("jdbc:postgresql://u:p@[::1]:5432,db/orders?x=y")
	m.Add("jdbc:oracle:thin:scott/tiger@//db:1521/sales")
	m.Add("jdbc:sqlserver://db\\inst:1433;databaseName={x}")
	m.Add("r2dbc:pool:mysql://u:p@db/x")
	m.Add("redis://u:p@db:6379/0")
	m.Fuzz(func(t *testing.T, url string) {
		for _, parse := range []func(string) (endpoint, bool){parseJDBC, parseR2DBC, parseRedis} {
			at, ok := parse(url)
			if !ok {
				continue
			}
			require.True(t, Plain(at.name))
			require.NotEmpty(t, at.hosts)
			require.LessOrEqual(t, len(at.hosts), maxHosts)
			for _, p := range at.hosts {
				require.NotZero(t, p.Port)
				require.Regexp(t, `^[A-Za-z0-9._:-]{1,253}$`, p.Host)
			}
		}
	})
}
