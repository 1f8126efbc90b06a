// Package hsperf reads the performance data that a HotSpot JVM publishes in
// /tmp/hsperfdata_USER/PID, from outside and without its help, and whose Java a
// process runs.
package hsperf
