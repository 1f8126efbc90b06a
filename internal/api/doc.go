// Package api holds the JSON documents of version 1 as Go types: the one
// definition of their fields, for writers and readers. A
// document only grows: no field changes its meaning or is removed.
package api
