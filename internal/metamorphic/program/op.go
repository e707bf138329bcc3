package program

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/goiwarp/iwarp/internal/damage"
)

// An End is one end of a connection: Side 0, a, is its initiator, and Side 1, b, its responder.
type End struct{ Conn, Side int }

func (e End) String() string { return strconv.Itoa(e.Conn) + "ab"[e.Side:e.Side+1] }

func (e End) peer() End { return End{e.Conn, 1 - e.Side} }

func parseEnd(s string) (End, error) {
	if n := len(s); n >= 2 {
		conn, err := strconv.Atoi(s[:n-1])
		if side := strings.IndexByte("ab", s[n-1]); err == nil && conn >= 0 && side >= 0 {
			return End{conn, side}, nil
		}
	}
	return End{}, fmt.Errorf("%q is no end of a connection: want 0a, 0b, 1a and so on", s)
}

// A Verb is what an operation does.
type Verb string

// The verbs. The region of an operation (r=) is one of the peer's, except that of Register,
// Invalidate and Race, which is the end's own.
const (
	Register   Verb = "register"   // make memory accessible to the peer: len, how=mr|bound|fast|window|buffer
	Invalidate Verb = "invalidate" // when the peer's work is done: how=verb|work|close
	Recv       Verb = "recv"       // post a receive: len
	Send       Verb = "send"       // src, len
	SendInv    Verb = "sendinv"    // Send with Invalidate
	Write      Verb = "write"      // src, dst, len
	WriteImm   Verb = "writeimm"   // Write with Immediate: the same, and imm
	Read       Verb = "read"       // src of the region, dst of the end's memory, len
	ReadInv    Verb = "readinv"    // Read with local Invalidate, into a region of its own
	FetchAdd   Verb = "fadd"       // dst, add, mask
	CompareSwp Verb = "cswap"      // dst, cmp, swap, mask (of both)
	Swap       Verb = "swap"       // dst, swap, mask
	Imm        Verb = "imm"        // Immediate Data: imm
	Commit     Verb = "commit"     // dst, len
	Drain      Verb = "drain"      // wait for the send queue
	Compare    Verb = "compare"    // wait for all work of the connection, and compare everything

	// The verbs that end a connection.
	Close     Verb = "close"     // how=both|one
	Abort     Verb = "abort"     // this end aborts
	Terminate Verb = "terminate" // this end sends a Terminate
	Cut       Verb = "cut"       // len more octets of this end arrive: how=reset|fin, or one of damages
	BadWrite  Verb = "badwrite"  // how=stag|bounds|access|dead; a region that lives is invalidated before
	BadRead   Verb = "badread"   // the same
	BadAdd    Verb = "badadd"    // the same
	BadInv    Verb = "badinv"    // how=stag|access|dead
	NoReceive Verb = "noreceive" // a Send that finds no receive: src, len
	TooLong   Verb = "toolong"   // a Send that is longer than its receive: src, len
	Race      Verb = "race"      // revoke a region while the peer may use it: how=verb|close
)

// hows lists the values of how; the first one is the default.
var hows = map[Verb][]string{
	Register: {"mr", "bound", "fast", "window", "buffer"}, Invalidate: {"verb", "work", "close"}, Close: {"both", "one"}, Cut: {damage.Reset, damage.FIN},
	BadWrite: {"stag", "bounds", "access", "dead"}, BadRead: {"stag", "bounds", "access", "dead"}, BadAdd: {"stag", "bounds", "access", "dead"},
	BadInv: {"stag", "access", "dead"}, Race: {"verb", "close"},
}

// damages are further values of how for Cut, which Generate does not draw: see package damage. The connection is reset
// soon after. Damage demands a CRC. Over SCTP, len counts datagrams.
var damages = []string{damage.Corrupt, damage.Stall, damage.HalfClose, damage.Vanish, damage.Lose, damage.Address, damage.Abort}

var verbs = []Verb{
	Register, Invalidate, Recv, Send, SendInv, Write, WriteImm, Read, ReadInv, FetchAdd, CompareSwp, Swap, Imm, Commit, Drain, Compare,
	Close, Abort, Terminate, Cut, BadWrite, BadRead, BadAdd, BadInv, NoReceive, TooLong, Race,
}

// An Op is one line of a program. Every value of every field is valid: the model reduces
// offsets and lengths to what fits, and omits an operation on an object that does not exist.
type Op struct {
	End    End
	Verb   Verb
	How    string
	Region int // r=

	Src, Dst, Len, SGEs     int
	Add, Cmp, Swap, Mask    uint64
	Imm                     uint64
	Fence                   string // read, local or nothing
	Unsignaled, Sol, Inline bool
}

// The parameters of an operation, in the order in which they are written.
var (
	intsOf = []struct {
		key string
		at  func(*Op) *int
	}{
		{"r", func(o *Op) *int { return &o.Region }},
		{"src", func(o *Op) *int { return &o.Src }},
		{"dst", func(o *Op) *int { return &o.Dst }},
		{"len", func(o *Op) *int { return &o.Len }},
		{"sges", func(o *Op) *int { return &o.SGEs }},
	}
	wordsOf = []struct {
		key string
		at  func(*Op) *uint64
	}{
		{"add", func(o *Op) *uint64 { return &o.Add }},
		{"cmp", func(o *Op) *uint64 { return &o.Cmp }},
		{"swap", func(o *Op) *uint64 { return &o.Swap }},
		{"mask", func(o *Op) *uint64 { return &o.Mask }},
		{"imm", func(o *Op) *uint64 { return &o.Imm }},
	}
	flagsOf = []struct {
		key string
		at  func(*Op) *bool
	}{
		{"unsignaled", func(o *Op) *bool { return &o.Unsignaled }},
		{"solicited", func(o *Op) *bool { return &o.Sol }},
		{"inline", func(o *Op) *bool { return &o.Inline }},
	}
)

// String returns the line of the operation, without parameters that are zero.
func (o Op) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v %s", o.End, o.Verb)
	if o.How != "" {
		b.WriteString(" how=" + o.How)
	}
	for _, f := range intsOf {
		if n := *f.at(&o); n != 0 {
			fmt.Fprintf(&b, " %s=%d", f.key, n)
		}
	}
	for _, f := range wordsOf {
		if n := *f.at(&o); n != 0 {
			fmt.Fprintf(&b, " %s=%#x", f.key, n)
		}
	}
	if o.Fence != "" {
		b.WriteString(" fence=" + o.Fence)
	}
	for _, f := range flagsOf {
		if *f.at(&o) {
			b.WriteString(" " + f.key)
		}
	}
	return b.String()
}

func parseOp(line string) (Op, error) {
	words := strings.Fields(line)
	if len(words) < 2 {
		return Op{}, fmt.Errorf("%q: want an end and a verb", line)
	}
	end, err := parseEnd(words[0])
	if err != nil {
		return Op{}, err
	}
	o := Op{End: end}
	for _, v := range verbs {
		if string(v) == words[1] {
			o.Verb = v
		}
	}
	if o.Verb == "" {
		return Op{}, fmt.Errorf("%q: there is no verb %q", line, words[1])
	}
	for _, w := range words[2:] {
		if err := o.set(w); err != nil {
			return Op{}, fmt.Errorf("%q: %w", line, err)
		}
	}
	return o, nil
}

// set sets one parameter.
func (o *Op) set(word string) error {
	key, value, _ := strings.Cut(word, "=")
	switch key {
	case "how":
		all := hows[o.Verb]
		if o.Verb == Cut {
			all = slices.Concat(all, damages)
		}
		if !slices.Contains(all, value) {
			return fmt.Errorf("%q: want one of %v", word, all)
		}
		o.How = value
		return nil
	case "fence":
		if value != "read" && value != "local" {
			return fmt.Errorf("%q: want read or local", word)
		}
		o.Fence = value
		return nil
	}
	for _, f := range intsOf {
		if f.key == key {
			n, err := strconv.ParseUint(value, 0, 31)
			*f.at(o) = int(n)
			return err
		}
	}
	for _, f := range wordsOf {
		if f.key == key {
			n, err := strconv.ParseUint(value, 0, 64)
			*f.at(o) = n
			return err
		}
	}
	for _, f := range flagsOf {
		if f.key == word {
			*f.at(o) = true
			return nil
		}
	}
	return fmt.Errorf("there is no parameter %q", word)
}

// how returns the value of How, or the default.
func (o *Op) how() string {
	if all := hows[o.Verb]; o.How == "" && len(all) > 0 {
		return all[0]
	}
	return o.How
}
