// Package docker holds the image to what it promises, in real containers on a
// Docker engine of the tests' own. `make prove PROOF=docker` runs them; README.md says
// what they do to the machine, and what was seen.
package docker
