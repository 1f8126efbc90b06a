// Package config reads the agent's configuration file: strict YAML into plain
// values. It opens one file and knows nothing of the command line or of what
// the values are for.
package config
