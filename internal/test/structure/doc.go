// Package structure reads the project's own source: which files of a package
// call which, how large its packages are, and which words its comments and pages
// use. Its tests hold what reviewers would otherwise have to look for.
package structure
