// Package loadreport draws the result of a load test as one page: drawn once, complete without
// a script, nothing loaded from elsewhere. It is pure: a document goes in, a page comes out.
//
// Start at page.go; chart.go turns the course of a run into shapes.
package loadreport
