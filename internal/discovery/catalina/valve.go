package catalina

import "github.com/tcpdiag/tcpdiag/internal/model"

// semaphoreClass bounds how many requests are served at once: the others hold their
// thread and wait in it (SemaphoreValve.invoke, concurrency 10 by default).
const semaphoreClass = "org.apache.catalina.valves.SemaphoreValve"

// gate is the narrowest SemaphoreValve below an element, nil without one. Who does not
// wait in it (block="false") holds no thread.
func (r *reader) gate(e *element) (narrowest *model.Setting[int]) {
	for _, child := range e.children {
		found := r.gate(child)
		if child.name == "Valve" && r.text(child, "className").text == semaphoreClass && r.text(child, "block").text != "false" {
			found = pick(r, r.int(child, "concurrency"), "concurrency", 10, plain, nil)
			if found != nil {
				found.Source += ", SemaphoreValve"
			}
		}
		if found != nil && (narrowest == nil || found.Value < narrowest.Value) {
			narrowest = found
		}
	}
	return narrowest
}
