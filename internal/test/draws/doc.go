// Package draws has deployments that nobody chose: a server, its limits, its handlers,
// its clients, a fault and whoever asks, drawn from a seed with the weights of draw.go.
// What may be said of each follows from how it was made, what the server's own MBeans and
// the kernel say meanwhile, and the clients' own account.
//
//	go test -v ./internal/test/draws -run 'Draw/7/17'     # one draw by its name: seed 7, number 17
//	make prove PROOF=draws-kept                           # those that were wrong once
//	make prove PROOF=draws ARGS='-seed 7 -draws 300'      # many of them, and the table
package draws
