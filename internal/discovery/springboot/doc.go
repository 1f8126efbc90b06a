// Package springboot finds a Spring Boot application's effective settings from
// outside the JVM, statically, each with its source.
//
// It does what Spring Boot itself does before the first bean exists: the
// command line, the environment, SPRING_APPLICATION_JSON, the system properties
// and the config data files become an ordered list of documents, the highest
// precedence first, and a property is the first document's that has it under
// any of its spellings. The names of the Java classes that are followed here
// are in the doc comments; testdata/binder holds the program that runs the
// same cases through the real ones.
//
// Nothing of the application is executed and nothing is asked of it. What code
// may do at run time (default properties, a customizer bean, a config server)
// is reported as unavailable, never guessed.
package springboot
