// Package docs holds the pages that the program prints itself.
package docs

import _ "embed"

// Troubleshooting is docs/troubleshooting.md: one section per cause and finding.
//
//go:embed troubleshooting.md
var Troubleshooting string
