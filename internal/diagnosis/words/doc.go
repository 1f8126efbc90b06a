// Package words says in sentences what the symptoms are: facts with their numbers, that
// causes, findings and the summary share.
package words
