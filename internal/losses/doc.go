// Package losses says whose packets were dropped. The namespace's counters say
// how many, the sockets' counters say whose; attribution splits the one by the
// other so that no packet is lost or counted twice (conservation). It is pure.
package losses
