// Package attacks tries on the built agent what a hostile pod and a hostile
// network neighbour would: small files that are made to become large, files that
// are somebody else's, processes that are many or never answer, connections
// without end. The agent runs with the manifests' memory as root, with the
// DaemonSet's capabilities, and as the attacker's own user; next to it runs an honest
// server, which must not be affected, and a control that only ticks, by which the
// machine's own delays are distinguished from the agent's. `make prove PROOF=attacks` prints what the agent
// said, its memory and its delays.
package attacks
