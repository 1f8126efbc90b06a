// Package catalina reads a standalone Tomcat's configuration from outside: the
// connectors of server.xml with their limits, each with its source.
//
// It follows what Tomcat does when it starts: Bootstrap (catalina.base and
// catalina.home), CatalinaProperties (conf/catalina.properties becomes system
// properties), Digester (substitution in attributes), ConnectorCreateRule
// (shared executors), IntrospectionUtils (a value that is no number is
// ignored), and the defaults of AbstractEndpoint and StandardThreadExecutor,
// which changed over the versions.
package catalina
