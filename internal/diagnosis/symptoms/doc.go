// Package symptoms says what the evidence on a listener shows: which stages are full, what
// the busy threads wait for, who failed. It is what a cause may ask; it names none.
package symptoms
