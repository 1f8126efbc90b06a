package springboot

import (
	"slices"
	"strings"

	"github.com/tcpdiag/tcpdiag/internal/discovery/springboot/version"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// The libraries that pool connections, as their jars are named.
const (
	hikari     = "HikariCP"
	tomcatJDBC = "tomcat-jdbc"
	r2dbcPool  = "r2dbc-pool"
	jedis      = "jedis"
	lettuce    = "lettuce-core"
)

// maxPool is the largest size of a pool that is believed.
const maxPool = 100_000

// Backend is a server that the configuration names.
type Backend struct {
	Name  string // the database, or the product
	Hosts []HostPort
	Pool  *model.Pool // nil where the size of none is known
}

// Backends are the database and the Redis of Spring Boot's own properties, and
// the bound on the connections to them. Nothing of a URL is kept but hosts,
// ports and the name of the database; one that cannot be read whole is left out.
func (e *Environment) Backends() (list []Backend, missing []model.Unavailable) {
	s := &settings{e: e, v: version.Parse(e.boot)}
	for _, read := range []func() (Backend, bool){s.dataSource, s.r2dbc, s.redis} {
		if b, ok := read(); ok {
			list = append(list, b)
		}
	}
	return list, s.lost
}

// text is a property as text, "" where it is not set or cannot be known.
func (s *settings) text(name string, older ...string) string {
	v, ok, err := s.get(name, older...)
	if !ok || err != nil {
		return ""
	}
	return strings.TrimSpace(v.Text)
}

// dataSource is that of DataSourceProperties. A JNDI name takes precedence over it
// (JndiDataSourceAutoConfiguration).
func (s *settings) dataSource() (Backend, bool) {
	if s.text(dataSourceName+".jndi-name") != "" {
		return Backend{}, false
	}
	library, url := s.poolLibrary(), s.text(dataSourceName+".url")
	if hikariURL := s.text(dataSourceName + ".hikari.jdbc-url"); library == hikari && hikariURL != "" {
		url = hikariURL // bound to HikariDataSource after it was made with the other
	}
	at, ok := parseJDBC(url)
	if !ok {
		return Backend{}, false
	}
	b := Backend{Name: at.name, Hosts: at.hosts}
	switch library {
	case hikari: // HikariConfig.DEFAULT_POOL_SIZE
		b.Pool = s.pool(hikari, hikariSizeName, 10)
	case tomcatJDBC: // PoolProperties.DEFAULT_MAX_ACTIVE
		b.Pool = s.pool(tomcatJDBC, tomcatSizeName, 100)
	}
	return b, true
}

// poolLibrary is which pool Spring Boot makes: the one that is named, else the
// first that the class path has; HikariCP comes first since Spring Boot 2.0
// (DataSourceBuilder). Where the class path shows none, as in a jar into which
// the libraries were merged, it is the one whose size is set.
func (s *settings) poolLibrary() string {
	switch name := s.text(dataSourceName + ".type"); {
	case strings.HasPrefix(name, "com.zaxxer.hikari."):
		return hikari
	case strings.HasPrefix(name, "org.apache.tomcat.jdbc.pool."):
		return tomcatJDBC
	case name != "":
		return ""
	}
	order := []string{hikari, tomcatJDBC}
	if s.v.Known() && !s.v.AtLeast(2) {
		slices.Reverse(order)
	}
	for _, library := range order {
		if slices.Contains(s.e.libs, library) {
			return library
		}
	}
	for _, library := range order {
		if s.text(map[string]string{hikari: hikariSizeName, tomcatJDBC: tomcatSizeName}[library]) != "" {
			return library
		}
	}
	return ""
}

// pool is a pool's size; none where it cannot be known. A size below one is
// refused or replaced by the library.
func (s *settings) pool(library, name string, standard int) *model.Pool {
	v, ok, err := s.get(name)
	size := fallback(s, standard)
	if ok {
		size = setting(s, name, v, err, parseInt)
	} else if size != nil {
		size.Source = "default of " + library
	}
	if size == nil || size.Value < 1 || size.Value > maxPool {
		return nil
	}
	return &model.Pool{Library: library, Setting: name, Size: *size}
}

// r2dbc is that of R2dbcProperties. A URL that asks for a pool itself sets its
// size itself, too (ConnectionFactoryOptionsInitializer).
func (s *settings) r2dbc() (Backend, bool) {
	at, ok := parseR2DBC(s.text(r2dbcName + ".url"))
	if !ok {
		return Backend{}, false
	}
	b := Backend{Name: at.name, Hosts: at.hosts}
	if slices.Contains(s.e.libs, r2dbcPool) && !at.pooled && s.text(r2dbcName+".pool.enabled") != "false" {
		b.Pool = s.pool(r2dbcPool, r2dbcSizeName, 10)
	}
	return b, true
}

// redis is that of RedisProperties: the URL takes precedence over host and port.
func (s *settings) redis() (Backend, bool) {
	if url := s.text(redisName+".url", oldRedisName+".url"); url != "" {
		at, ok := parseRedis(url)
		return Backend{Name: at.name, Hosts: at.hosts, Pool: s.redisPool()}, ok
	}
	host := s.text(redisName+".host", oldRedisName+".host")
	if host == "" {
		return Backend{}, false
	}
	if strings.Contains(host, ":") {
		host = "[" + strings.Trim(host, "[]") + "]"
	}
	if port := s.text(redisName+".port", oldRedisName+".port"); port != "" {
		host += ":" + port
	}
	hosts, ok := parseHostPorts(host, 6379)
	return Backend{Name: "redis", Hosts: hosts, Pool: s.redisPool()}, ok
}

// redisPool is that of Jedis, which is used where it is named or Lettuce is not there
// (JedisConnectionConfiguration, RedisConnectionConfiguration.isPoolEnabled). Lettuce is not
// said to have a pool: it shares one connection.
func (s *settings) redisPool() *model.Pool {
	client := s.text(redisName+".client-type", oldRedisName+".client-type")
	if client == "" && slices.Contains(s.e.libs, jedis) && !slices.Contains(s.e.libs, lettuce) {
		client = jedis
	}
	name := redisName
	switch {
	case s.v.Known() && !s.v.AtLeast(2): // had other names
		return nil
	case s.v.Known() && !s.v.AtLeast(3):
		name = oldRedisName
	}
	if !strings.EqualFold(client, jedis) || s.text(name+".jedis.pool.enabled") == "false" {
		return nil
	}
	return s.pool("Jedis", name+".jedis.pool.max-active", 8) // RedisProperties.Pool
}
