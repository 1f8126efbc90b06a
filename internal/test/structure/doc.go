// Package structure reads the project's own source: which files of a package
// call which, and how large its types are. Its tests hold what reviewers would
// otherwise have to look for.
package structure
