// Package threads reads the threads of a process: what each waits for, which of
// them accepts connections and which handle requests, what they do with signals,
// and how long they wait for a CPU.
package threads
