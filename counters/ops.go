package counters

import "github.com/goiwarp/iwarp/rdmap"

// Traffic counts messages, and octets of payload.
type Traffic = rdmap.Traffic

// Ops counts one direction of a QP, by kind of message.
type Ops struct {
	Send         Traffic `json:"send,omitzero"` // all four kinds of Send
	RDMAWrite    Traffic `json:"rdma_write,omitzero"`
	ReadRequest  Traffic `json:"read_request,omitzero"`  // RDMA Read Requests
	ReadResponse Traffic `json:"read_response,omitzero"` // RDMA Read Responses
	Terminate    Traffic `json:"terminate,omitzero"`

	Immediate      Traffic `json:"immediate,omitzero"` // both kinds of Immediate Data, including that after an RDMA Write
	AtomicRequest  Traffic `json:"atomic_request,omitzero"`
	AtomicResponse Traffic `json:"atomic_response,omitzero"`

	CommitRequest  Traffic `json:"commit_request,omitzero"`
	CommitResponse Traffic `json:"commit_response,omitzero"`
}

// All yields each kind of message, by the name of its field in lower case with underscores, and its counts.
func (o *Ops) All(yield func(kind string, t *Traffic) bool) {
	for i, t := range o.kinds() {
		if !yield(kinds[i], t) {
			return
		}
	}
}

var kinds = [...]string{
	"send", "rdma_write", "read_request", "read_response", "terminate", "immediate", "atomic_request", "atomic_response",
	"commit_request", "commit_response",
}

func (o *Ops) kinds() [len(kinds)]*Traffic {
	return [...]*Traffic{
		&o.Send, &o.RDMAWrite, &o.ReadRequest, &o.ReadResponse, &o.Terminate, &o.Immediate, &o.AtomicRequest, &o.AtomicResponse,
		&o.CommitRequest, &o.CommitResponse,
	}
}

// Add adds the counts of p.
func (o *Ops) Add(p *Ops) {
	from := p.kinds()
	for i, t := range o.kinds() {
		t.Messages += from[i].Messages
		t.Octets += from[i].Octets
	}
}
