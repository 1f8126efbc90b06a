// Package predict says what an advised change would do: it simulates the load that was
// measured (internal/plan) with the setting as it is, and where that gives what was
// measured, with the setting as advised. It is pure.
//
// Start at Measure; measured.go says from what, fit.go which loads are tried.
package predict
