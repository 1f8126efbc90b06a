package model

// Answer is what a person reads of a verdict first: the same four things in the same
// order on every surface.
type Answer struct {
	// What happens, clients first: "34 clients of the last 1 s did not get in."
	What string
	// Why is the chain in one sentence, to its root.
	Why string
	// Do are at most three steps in the order in which a person takes them, each one
	// action; none where nothing has to be done.
	Do []Step `json:",omitempty"`
	// Not is the one tempting change that does not help, and why; "" where there is none.
	Not string `json:",omitempty"`
}

// MaxSteps is how many steps an answer has at most.
const MaxSteps = 3

// Step is one action: something to look at, a command to copy, or a setting with its
// value as it is and as it should be.
type Step struct {
	Text string // one sentence without its full stop: "Raise the number of threads"
	// Command is to be copied as it is, "" where the step is none.
	Command string `json:",omitempty"`
	// Setting is what the value is called where this server is configured:
	// "server.tomcat.threads.max", "net.core.somaxconn". File is where the value in
	// force was found, "" where it is a default or nobody knows. From is "" where no
	// value is set or known.
	Setting, File, From, To string `json:",omitempty"`
	// Limit is the limit that Setting is, by its name among Listener.Limits
	// (accept_queue, max_connections, max_threads), or connection_pool, "" for what a simulation does not know.
	Limit string `json:",omitempty"`
	// Effect is what the change would do by simulation, "" where that was not tried or
	// the present state is not reproduced by it.
	Effect string `json:",omitempty"`
}
