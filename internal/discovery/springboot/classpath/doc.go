// Package classpath is where the application's class loader finds resources: directories,
// jars, and the parts and jars inside an executable jar. From it come the versions of
// Spring Boot and Tomcat, the kind of server, and the application's own code that may set
// limits behind the configuration's back.
package classpath
