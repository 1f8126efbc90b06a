package springboot

import (
	"net/netip"
	"strconv"
	"strings"
)

const (
	maxURL   = 4096 // bytes of a URL that is read
	maxHosts = 8    // hosts in one
)

// HostPort is a host as it was written, an address or a name, and a port.
type HostPort struct {
	Host string
	Port uint16
}

// endpoint is what is kept of a URL.
type endpoint struct {
	hosts  []HostPort
	name   string
	pooled bool // the URL itself asks for a pool
}

// Plain says that a text can be the name of a database: letters, digits and
// "_.$-", 64 at most.
func Plain(name string) bool {
	return name != "" && len(name) <= 64 && strings.Trim(name, letters+"$") == ""
}

const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-"

// parseJDBC reads the URLs of PostgreSQL, MySQL, MariaDB, Oracle's thin driver and
// SQL Server. Those with descriptions, aliases or instances without a port say
// nothing of where they lead.
func parseJDBC(url string) (endpoint, bool) {
	kind, rest, _ := strings.Cut(strings.TrimPrefix(url, "jdbc:"), ":")
	if !strings.HasPrefix(url, "jdbc:") || len(url) > maxURL {
		return endpoint{}, false
	}
	switch kind {
	case "postgresql":
		if !strings.HasPrefix(rest, "/") { // jdbc:postgresql:database
			rest = "///" + rest
		}
		return parseURL(rest, kind, 5432, "localhost")
	case "mysql", "mariadb":
		for _, mode := range []string{"replication:", "loadbalance:", "load-balance-read:", "sequential:", "aurora:"} {
			rest = strings.TrimPrefix(rest, mode)
		}
		return parseURL(rest, kind, 3306, "localhost")
	case "oracle":
		return parseOracle(rest)
	case "sqlserver":
		return parseSQLServer(rest)
	}
	return endpoint{}, false
}

// parseR2DBC reads r2dbc:postgresql://host/database and the like.
func parseR2DBC(url string) (endpoint, bool) {
	scheme, rest, _ := strings.Cut(url, ":")
	if scheme != "r2dbc" && scheme != "r2dbcs" || len(url) > maxURL {
		return endpoint{}, false
	}
	rest, pooled := strings.CutPrefix(rest, "pool:")
	driver, rest, _ := strings.Cut(rest, ":")
	port, ok := map[string]uint16{
		"postgresql": 5432, "postgres": 5432, "mysql": 3306, "mariadb": 3306, "mssql": 1433, "sqlserver": 1433, "oracle": 1521,
	}[driver]
	if !ok {
		return endpoint{}, false
	}
	at, ok := parseURL(rest, driver, port, "")
	at.pooled = pooled
	return at, ok
}

// parseRedis reads redis://user:password@host:port/0.
func parseRedis(url string) (endpoint, bool) {
	scheme, rest, _ := strings.Cut(url, ":")
	if scheme != "redis" && scheme != "rediss" || len(url) > maxURL {
		return endpoint{}, false
	}
	at, ok := parseURL(rest, "redis", 6379, "")
	at.name = "redis"
	return at, ok
}

// parseURL reads //hosts/database?parameters. An "@" where none belongs is taken
// for one of a password with unusual characters, and the URL is left alone.
func parseURL(text, product string, port uint16, nobody string) (endpoint, bool) {
	text, ok := strings.CutPrefix(text, "//")
	end := strings.IndexAny(text+"/", "/?#;")
	authority, rest := text[:end], text[end:]
	path := strings.TrimPrefix(rest, "/")
	if i := strings.IndexAny(path, "?#;"); i >= 0 {
		path = path[:i]
	}
	if !ok || strings.Contains(path, "@") || !strings.HasPrefix(rest, "/") && strings.Contains(rest, "@") {
		return endpoint{}, false
	}
	if authority == "" {
		authority = nobody
	}
	hosts, ok := parseHostPorts(authority, port)
	return endpoint{hosts: hosts, name: plainOr(path, product)}, ok
}

func plainOr(name, product string) string {
	if Plain(name) {
		return name
	}
	return product
}

// parseHostPorts reads a list of hosts with or without a port. What stands in front
// of an "@" are credentials; of two "@" it is not known where they end.
func parseHostPorts(authority string, port uint16) ([]HostPort, bool) {
	if strings.Count(authority, "@") > 1 || strings.Count(authority, ",") >= maxHosts {
		return nil, false
	}
	authority = authority[strings.IndexByte(authority, '@')+1:]
	var out []HostPort
	for text := range strings.SplitSeq(authority, ",") {
		p, ok := parseHostPort(strings.TrimSpace(text), port)
		if !ok {
			return nil, false
		}
		out = append(out, p)
	}
	return out, true
}

func parseHostPort(text string, port uint16) (HostPort, bool) {
	host, number, with := strings.Cut(text, ":")
	if inner, bracketed := strings.CutPrefix(text, "["); bracketed {
		host, number, with = strings.Cut(inner, "]")
		if addr, err := netip.ParseAddr(host); !with || err != nil || addr.Zone() != "" {
			return HostPort{}, false
		}
		if number, with = strings.CutPrefix(number, ":"); !with && number != "" {
			return HostPort{}, false
		}
	} else if host == "" || len(host) > 253 || strings.Trim(host, letters) != "" {
		return HostPort{}, false
	}
	if !with {
		return HostPort{host, port}, true
	}
	n, err := strconv.ParseUint(number, 10, 16)
	return HostPort{host, uint16(n)}, err == nil && n > 0
}

// parseOracle reads thin:user/password@host:port:sid, @host:port/service and
// @//host/service.
func parseOracle(text string) (endpoint, bool) {
	text, thin := strings.CutPrefix(text, "thin:")
	_, text, _ = strings.Cut(text, "@")
	if !thin || strings.Contains(text, "@") {
		return endpoint{}, false
	}
	text, _, _ = strings.Cut(text, "?")
	for _, prefix := range []string{"tcp:", "tcps:", "//"} {
		text = strings.TrimPrefix(text, prefix)
	}
	authority, name, ok := strings.Cut(text, "/")
	if !ok { // host:port:sid
		i := strings.LastIndexByte(text, ':')
		if i < 0 || !strings.Contains(text[:i], ":") {
			return endpoint{}, false
		}
		authority, name = text[:i], text[i+1:]
	}
	if i := strings.IndexAny(name, ":/"); i >= 0 { // service:server/instance
		name = name[:i]
	}
	hosts, ok := parseHostPorts(authority, 1521)
	return endpoint{hosts: hosts, name: plainOr(name, "oracle")}, ok
}

// parseSQLServer reads //host\instance:port;databaseName=name. The port of an
// instance without one is known to the SQL Server Browser only. A brace quotes values,
// in which anything may stand: then no property is believed.
func parseSQLServer(text string) (endpoint, bool) {
	text, ok := strings.CutPrefix(text, "//")
	authority, rest, _ := strings.Cut(text, ";")
	host, instance, named := strings.Cut(authority, "\\")
	if _, port, with := strings.Cut(instance, ":"); with {
		host += ":" + port
	} else if named {
		return endpoint{}, false
	}
	if !ok || strings.ContainsAny(host, "@,") {
		return endpoint{}, false
	}
	name := "sqlserver"
	if !strings.Contains(rest, "{") {
		for property := range strings.SplitSeq(rest, ";") {
			key, value, _ := strings.Cut(property, "=")
			switch strings.ToLower(strings.TrimSpace(key)) {
			case "databasename", "database":
				name = plainOr(strings.TrimSpace(value), name)
			case "portnumber", "port":
				if !strings.Contains(host, ":") {
					host += ":" + strings.TrimSpace(value)
				}
			}
		}
	} else if !strings.Contains(host, ":") {
		return endpoint{}, false
	}
	hosts, ok := parseHostPorts(host, 1433)
	return endpoint{hosts: hosts, name: name}, ok
}
