package passthrough

import "os"

// passedOn: what is typed reaches the command by itself.
func passedOn() []os.Signal { return []os.Signal{os.Interrupt} }
