// Package machine describes what matters to the library on this machine: limits, the processor, transports; and what to do
// about what is missing.
package machine

import "context"

// A Fact describes one property of the machine.
type Fact struct {
	Group  string `json:"group"`
	Name   string `json:"name"`
	Value  string `json:"value"`
	Lacks  bool   `json:"lacks,omitempty"`  // something is missing
	Remedy string `json:"remedy,omitempty"` // how to get it
}

// Facts examines the machine.
func Facts(ctx context.Context) []Fact {
	all := system()
	all = append(all, processor()...)
	all = append(all, limits()...)
	return append(all, transports(ctx)...)
}
