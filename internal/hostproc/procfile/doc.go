// Package procfile reads the small files and the folders of numbers that the
// kernel has below /proc and in control groups, in few system calls, and takes
// numbers and lines out of them without allocating.
package procfile
