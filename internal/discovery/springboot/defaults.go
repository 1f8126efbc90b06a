package springboot

import "github.com/tcpdiag/tcpdiag/internal/discovery/springboot/version"

// defaultSince is a default and the version of Spring Boot that brought it.
type defaultSince struct {
	since version.Number
	value int
}

// defaultsOf are the defaults of Spring Boot's Tomcat settings, each with the
// versions in which it changed (ServerProperties.Tomcat, TomcatServerProperties
// since 4.0). A setting that Spring Boot leaves alone has Tomcat's own default,
// which is the same in every Tomcat that Spring Boot embeds.
func defaultsOf() map[string][]defaultSince {
	return map[string][]defaultSince{
		portName: {{version.Number{}, 8080}},
		// 10000 was NIO's default until Tomcat 9.0.30 and 8.5.76.
		maxConnectionsName: {{version.Number{}, 10000}, {version.Number{2, 1, 12}, 8192}, {version.Number{2, 2, 0}, 10000}, {version.Number{2, 2, 3}, 8192}},
		acceptCountName:    {{version.Number{}, 100}},
		threadsMaxName:     {{version.Number{}, 200}},
		threadsMinName:     {{version.Number{}, 10}},
		maxQueueName:       {{version.Number{}, 1<<31 - 1}},
		keepAliveReqName:   {{version.Number{}, 100}},
		connTimeoutName:    {{version.Number{}, 60_000}}, // milliseconds; server.xml's 20 s is not read
	}
}

// defaultOf is the default of a setting in a version of Spring Boot; of the
// newest when the version is not known.
func defaultOf(name string, v version.Number) int {
	value := 0
	for _, row := range defaultsOf()[name] {
		if !v.Known() || v.AtLeast(row.since[:]...) {
			value = row.value
		}
	}
	return value
}

// The canonical names of the settings.
const (
	portName           = "server.port"
	addressName        = "server.address"
	managementPortName = "management.server.port"
	maxConnectionsName = "server.tomcat.max-connections"
	acceptCountName    = "server.tomcat.accept-count"
	threadsMaxName     = "server.tomcat.threads.max"
	threadsMinName     = "server.tomcat.threads.min-spare"
	maxQueueName       = "server.tomcat.threads.max-queue-capacity"
	keepAliveReqName   = "server.tomcat.max-keep-alive-requests"
	connTimeoutName    = "server.tomcat.connection-timeout"
	keepAliveName      = "server.tomcat.keep-alive-timeout"
	sslName            = "server.ssl"
	http2Name          = "server.http2.enabled"
	virtualName        = "spring.threads.virtual.enabled"
	dataSourceName     = "spring.datasource"
	hikariSizeName     = "spring.datasource.hikari.maximum-pool-size"
	tomcatSizeName     = "spring.datasource.tomcat.max-active"
	r2dbcName          = "spring.r2dbc"
	r2dbcSizeName      = "spring.r2dbc.pool.max-size"
	redisName          = "spring.data.redis"
	oldRedisName       = "spring.redis" // before Spring Boot 3.0
)

// span is the versions of Spring Boot that know a property: from (included)
// until (excluded; none: still known).
type span struct{ from, until version.Number }

// spans are the properties that not every version knows.
func spans() map[string]span {
	return map[string]span{
		"server.tomcat.max-threads":       {until: version.Number{2, 5, 0}},
		"server.tomcat.min-spare-threads": {until: version.Number{2, 5, 0}},
		threadsMaxName:                    {from: version.Number{2, 3, 0}},
		threadsMinName:                    {from: version.Number{2, 3, 0}},
		maxQueueName:                      {from: version.Number{3, 3, 0}},
		"server.connection-timeout":       {until: version.Number{2, 3, 0}},
		connTimeoutName:                   {from: version.Number{2, 1, 10}},
		keepAliveName:                     {from: version.Number{2, 5, 0}},
		keepAliveReqName:                  {from: version.Number{2, 5, 0}},
		virtualName:                       {from: version.Number{3, 2, 0}},
		oldRedisName + ".url":             {until: version.Number{3, 0, 0}},
		oldRedisName + ".host":            {until: version.Number{3, 0, 0}},
		oldRedisName + ".port":            {until: version.Number{3, 0, 0}},
		oldRedisName + ".client-type":     {until: version.Number{3, 0, 0}},
		redisName + ".url":                {from: version.Number{3, 0, 0}},
		redisName + ".host":               {from: version.Number{3, 0, 0}},
		redisName + ".port":               {from: version.Number{3, 0, 0}},
		redisName + ".client-type":        {from: version.Number{3, 0, 0}},
	}
}
