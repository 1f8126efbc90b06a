// Package advice has the changes that causes and findings propose: settings by the names
// that their owner knows, values that a person would write, and steps to copy.
package advice
