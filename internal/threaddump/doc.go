// Package threaddump asks a HotSpot JVM what its threads are doing, by the interface
// that jcmd and jstack use, and groups the answer. Nothing else in this program says
// anything to an observed process, so this is only done when it was asked for, to
// processes of the own user and group, and after it is known to be harmless.
//
// A JVM listens on a socket of its /tmp, .java_pidN. If it does not yet, a file
// .attach_pidN there and SIGQUIT make it begin (AttachListener::is_init_trigger). A
// process that does not catch SIGQUIT is ended by it: see quit.
package threaddump
