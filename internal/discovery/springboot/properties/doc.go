// Package properties holds Spring's property sources: what stands in .properties, YAML, XML
// and JSON as names and values, the spellings under which a name is found (relaxed
// binding), lists and maps, and the placeholders in values. It opens nothing.
package properties
