// Package cgroup reads what a process's control group does to it: its limits, how
// long they have withheld the CPU, whether it is frozen, and which container it is.
package cgroup
