// Package machine tells what of this machine matters to the library: limits, the processor, transports; and what to do
// about what is missing.
package machine

import "context"

// A Fact is one of them.
type Fact struct {
	Group  string `json:"group"`
	Name   string `json:"name"`
	Value  string `json:"value"`
	Lacks  bool   `json:"lacks,omitempty"`  // something is missing
	Remedy string `json:"remedy,omitempty"` // how to get it
}

// Facts looks at the machine.
func Facts(ctx context.Context) []Fact {
	all := system()
	all = append(all, processor()...)
	all = append(all, limits()...)
	return append(all, transports(ctx)...)
}
