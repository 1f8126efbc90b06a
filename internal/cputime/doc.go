// Package cputime measures what a piece of work costs in CPU time.
package cputime
