// Package causes is the catalogue: one file a cause, in one order of precedence
// (catalogue.go). An entry says when the cause holds (rule.go), what is said of it, what
// to do about it, and what its page in the documentation begins with (runbook.go). It asks
// package symptoms for what is so, and says it by packages words and advice.
package causes
