// Package target says which listeners are watched, and why: those on ports and of
// processes that were asked for, or else Tomcat's. It is pure.
package target
