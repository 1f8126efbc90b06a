// Package site checks the documentation as a site: `make site` builds it and runs the tests
// here on what was built.
package site
