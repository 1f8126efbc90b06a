// Package configdata finds a Spring Boot application's config files in the order of their
// precedence: locations, names, profiles, imports, config trees, and the conditions of
// their documents.
package configdata
