package attack

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/goiwarp/iwarp/internal/names"
	"github.com/goiwarp/iwarp/stag"
)

// A Layer is the protocol layer at which an attacker acts.
type Layer string

// The layers.
const (
	TCP    Layer = "tcp"    // octets that are not MPA
	MPA    Layer = "mpa"    // frames of the set-up
	FPDU   Layer = "fpdu"   // FPDUs
	DDP    Layer = "ddp"    // headers of segments, in good FPDUs
	RDMAP  Layer = "rdmap"  // messages, in good segments
	Commit Layer = "commit" // RDMA Commit
	CM     Layer = "cm"     // frames of authenticated set-up
	RMA    Layer = "rma"    // operations with keys, in Sends
	NVMe   Layer = "nvme"   // capsules, in Sends
	SCTP   Layer = "sctp"   // packets and chunks, over UDP
)

// A generator makes the conversation of a layer, before it is bent.
type generator func(d dice, at Target) talk

var generators = map[Layer]generator{
	TCP: tcp, MPA: mpa, FPDU: fpdu, DDP: ddp, RDMAP: rdmap, Commit: commits, CM: cm, RMA: rma, NVMe: nvme, SCTP: sctp,
}

// Layers returns all layers, from the bottom up, and then SCTP.
func Layers() []Layer { return []Layer{TCP, MPA, FPDU, DDP, RDMAP, Commit, CM, RMA, NVMe, SCTP} }

// Network returns the network over which attackers of the layer connect: tcp or udp.
func (l Layer) Network() string {
	if l == SCTP {
		return "udp"
	}
	return "tcp"
}

// A Target is what attackers know about the other side.
type Target struct {
	STag stag.STag // of a region that they may read and write, if Len is not 0
	TO   uint64
	Len  uint32
	Else []stag.STag // of regions that they must not access
	NQN  string      // of the NVMe subsystem
}

// An Act is the kind of a Step.
type Act uint8

// The acts. Over UDP, an attacker sends packets: Chunks and Cookie add the header of SCTP, with the association's tag.
const (
	Send   Act = iota // all of Data at once
	Slow              // Data, an octet at a time, with pauses of Wait
	Stall             // nothing, for Wait
	Await             // until the other side has sent something, or ended, for Wait at most
	FIN               // end the sending half
	RST               // reset the connection
	Chunks            // send Data, which is chunks of SCTP
	Cookie            // return the state cookie of the INIT ACK, with Data exclusive-ored into it
)

var actNames = [...]string{"send", "slow", "stall", "await", "FIN", "RST", "chunks", "cookie"}

func (a Act) String() string { return names.Of(a, actNames[:], "act %d") }

// A Step is one action of an attacker.
type Step struct {
	Act  Act
	Data []byte
	Wait time.Duration
}

// A Conversation is what an attacker does with one connection.
type Conversation struct {
	Layer        Layer
	Bent         []string // how it was altered: see Bends
	ReadsNothing bool     // it reads nothing
	Steps        []Step
}

// A talk is a conversation before it is bent.
type talk struct {
	opening  []Step                  // never bent
	messages [][]byte                // to be bent
	frame    func(msg []byte) []byte // what the layers below make of a message; nil: nothing
	act      Act                     // Send or Chunks
}

// Make makes conversation number n of a layer.
func Make(l Layer, seed, n uint64, at Target) Conversation {
	generate, ok := generators[l]
	if !ok {
		panic(fmt.Sprintf("attack: no layer %q", l))
	}
	d := newDice(l, seed, n)
	t := generate(d, at)
	old := generate(newDice(l, seed, n-1), at).messages // of another connection
	c := Conversation{Layer: l, ReadsNothing: d.one(12)}
	if !d.one(10) { // otherwise it stays as it was generated
		t.messages, c.Bent = bend(d, t.messages, old)
	}
	c.Steps = plays(d, t)
	var how string
	if c.Steps, how = disturb(d, c.Steps); how != "" {
		c.Bent = append(c.Bent, how)
	}
	return c
}

// plays turns a talk into steps: a few messages at a time, as they might arrive on a connection.
func plays(d dice, t talk) []Step {
	steps := t.opening
	for rest := t.messages; len(rest) > 0; {
		n := 1
		if t.act == Send {
			n += d.IntN(min(len(rest), 8))
		}
		var b []byte
		for _, msg := range rest[:n] {
			if t.frame != nil {
				msg = t.frame(msg)
			}
			b = append(b, msg...)
		}
		rest = rest[n:]
		steps = append(steps, Step{Act: t.act, Data: b})
		if d.one(6) {
			steps = append(steps, Step{Act: Await, Wait: replyTime})
		}
	}
	return steps
}

// The pauses of attackers.
const (
	replyTime = 200 * time.Millisecond // to wait for an answer
	openTime  = 2 * time.Second        // to wait for the answer to a Request
	slowPause = time.Millisecond       // between slow octets
)

// dice makes the random choices of one conversation.
type dice struct{ *rand.Rand }

func newDice(l Layer, seed, n uint64) dice {
	for _, c := range l {
		n = n*0x100000001b3 ^ uint64(c)
	}
	return dice{rand.New(rand.NewPCG(seed, n))}
}

// one returns true once in n times, on average.
func (d dice) one(n int) bool { return d.IntN(n) == 0 }

// octets returns n random octets.
func (d dice) octets(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(d.Uint32())
	}
	return b
}

// pick chooses one of some values.
func pick[T any](d dice, of ...T) T { return of[d.IntN(len(of))] }
