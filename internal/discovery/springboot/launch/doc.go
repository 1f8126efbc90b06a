// Package launch is what a JVM was started with: its command line taken apart the way the
// java launcher does, with argument files and the options of the environment, and as
// property sources. Its Process is the one way to the files of the process.
package launch
