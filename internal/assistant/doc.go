// Package assistant answers the questions of an assistant by the Model Context
// Protocol, on standard input and output: tools that read and change nothing, the
// runbooks and the recorded incidents as resources, and one prompt.
//
// It is read from New (server.go): each tool is one file. What is asked is a Source:
// an agent's API (agent.go), or this machine. Inputs and outputs are made of
// the types of the JSON documents (package api), and their schemas are of these types.
//
// Names of processes, files and peers are chosen by strangers, and so is everything
// that an agent sends. In an answer they are strings of a JSON document, without
// controls and bounded (clean.go), between two lines that nobody could foresee
// (fence.go): data to quote, never text to follow.
package assistant
