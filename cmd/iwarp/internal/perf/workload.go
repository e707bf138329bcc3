package perf

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/goiwarp/iwarp/cmd/iwarp/internal/authmode"
)

// The operations. For a kind without RDMA, a Write with or without Immediate, an rpcwrite and an rpcsend are
// data streamed to the server; a Read, an atomic operation and an rpc are data fetched from it.
const (
	opWrite    = "write"
	opRead     = "read"
	opSend     = "send"
	opPingPong = "pingpong"
	opImm      = "imm"    // RDMA Write with Immediate
	opAtomic   = "atomic" // Fetch and Add

	// Requests of the client, each with a response; see package rpc.
	opRPC      = "rpc"      // the server writes the octets to the client: an RDMA Write
	opRPCWrite = "rpcwrite" // the server reads the client's octets: an RDMA Read
	opRPCSend  = "rpcsend"  // the octets are behind the request
)

var operations = []string{opWrite, opRead, opSend, opPingPong, opImm, opAtomic, opRPC, opRPCWrite, opRPCSend}

// How a side sleeps while it waits for a completion.
const (
	waitPark  = "park"
	waitBlock = "block"
)

// atomicSize is the size of the operand of an atomic operation.
const atomicSize = 8

// A workload says what one side of a comparison does. The server gets it as JSON.
type workload struct {
	Kind     string        `json:"kind"` // a name of kinds
	Op       string        `json:"op"`
	Size     int           `json:"size"`             // octets of one operation
	Region   int           `json:"region,omitempty"` // octets through which the operations move, at least Size
	Shared   bool          `json:"shared,omitempty"` // outstanding Reads share one sink of Region octets
	Depth    int           `json:"depth"`            // outstanding operations on a connection
	Batch    int           `json:"batch,omitempty"`  // operations of one post, 0: as many as there is room for
	Moderate bool          `json:"moderate,omitempty"`
	Conns    int           `json:"conns"`
	Duplex   bool          `json:"duplex,omitempty"` // Write and Read: in both directions at once
	CRC      bool          `json:"crc,omitempty"`
	Markers  bool          `json:"markers,omitempty"`
	ULPDU    int           `json:"ulpdu,omitempty"`
	Latency  bool          `json:"latency,omitempty"` // one at a time, each timed
	Poll     time.Duration `json:"poll,omitempty"`    // busy polling of both sides
	Wait     string        `json:"wait,omitempty"`    // how both sides sleep, "": waitPark
	Chunk    int           `json:"chunk,omitempty"`   // tcp, tls: octets of one call, 0: the best of chunks
	Network  string        `json:"network,omitempty"` // iwarp: its transport, "": tcp
	Auth     string        `json:"auth,omitempty"`    // iwarp: how both sides authenticate each other, "": authmode.Plain
	Window   int64         `json:"window,omitempty"`  // iwarp: window of the client's Solicitor, 0: there is none
	CC       string        `json:"cc,omitempty"`      // congestion control, "": the system's
	Slow     int           `json:"slow,omitempty"`    // iwarp: further connections that do little, see pacer
	Idle     int           `json:"idle,omitempty"`    // iwarp: further connections that do nothing
}

// filled returns w with those fields filled in that follow from others.
func (w workload) filled() workload {
	w.Auth = cmp.Or(w.Auth, authmode.Plain)
	w.Depth, w.Conns, w.Region = max(w.Depth, 1), max(w.Conns, 1), max(w.Region, w.Size)
	if w.Op == opPingPong {
		w.Latency = true
	}
	if w.Latency {
		w.Depth = 1
	}
	w.Batch = min(w.Batch, w.Depth)
	return w
}

// sessionNetworks are the networks besides TCP: SCTP of the kernel, and in user space over UDP.
var sessionNetworks = []string{"sctp", "sctp+udp"}

const (
	maxSize  = 1 << 30
	maxDepth = 1 << 15
	maxConns = 1 << 12
	maxExtra = 1 << 15
)

// check refuses workloads that make no sense: a workload may come from a client that has not been
// authenticated.
func (w *workload) check() error {
	switch {
	case !slices.Contains(operations, w.Op):
		return fmt.Errorf("no operation %q: there are %s", w.Op, strings.Join(operations, ", "))
	case !slices.Contains([]string{"", waitPark, waitBlock}, w.Wait):
		return fmt.Errorf("no way to wait %q: there are %s and %s", w.Wait, waitPark, waitBlock)
	case w.Network != "" && !slices.Contains(sessionNetworks, w.Network):
		return fmt.Errorf("no network %q: there are tcp, %s", w.Network, strings.Join(sessionNetworks, ", "))
	case w.Auth != "" && !slices.Contains(authmode.All, w.Auth):
		return fmt.Errorf("no authentication %q: there are %s", w.Auth, strings.Join(authmode.All, ", "))
	case w.Duplex && (w.Latency || w.Op != opWrite && w.Op != opRead):
		return fmt.Errorf("no duplex %s: it is for write and read, without latency", w.Op)
	}
	for _, part := range []func() error{w.checkCall, w.checkNetwork, w.checkKind, w.checkNumbers} {
		if err := part(); err != nil {
			return err
		}
	}
	return nil
}

// checkNetwork refuses options that exist only over TCP.
func (w *workload) checkNetwork() error {
	switch {
	case w.Network == "":
		return nil
	case w.Auth == authmode.TLS:
		return fmt.Errorf("there is no TLS over %s", w.Network)
	case w.Markers || !w.CRC:
		return fmt.Errorf("no MPA over %s, which has the Markers, and the CRC that can be waived", w.Network)
	}
	return nil
}

// checkKind refuses options that a kind which answers requests does not support.
func (w *workload) checkKind() error {
	switch requests := w.Kind == "reqresp"; {
	case !requests && w.Kind != "http" && w.Kind != "grpc":
		return nil
	case w.Op != opRead && w.Op != opRPC || w.Duplex:
		return fmt.Errorf("%s can only read", w.Kind)
	case requests && w.Depth > maxRequests:
		return fmt.Errorf("%s has %d requests under way at most, not %d", w.Kind, maxRequests, w.Depth)
	}
	return nil
}

// checkNumbers refuses numbers that are out of range.
func (w *workload) checkNumbers() error {
	switch {
	case w.Op == opAtomic && w.Size != atomicSize:
		return fmt.Errorf("an atomic operation has %d octets, not %d", atomicSize, w.Size)
	case !within(w.Size, 1, maxSize), !within(w.Region, w.Size, maxSize):
		return fmt.Errorf("size %d and region %d are not within 1..%d", w.Size, w.Region, maxSize)
	case !within(w.Depth, 1, maxDepth):
		return fmt.Errorf("depth %d is not within 1..%d", w.Depth, maxDepth)
	case w.ownMemory() && w.Depth > maxSize/w.Size:
		return fmt.Errorf("%d operations of %d octets have more than %d together; Reads may share a sink", w.Depth, w.Size, maxSize)
	case !within(w.Conns, 1, maxConns):
		return fmt.Errorf("%d connections are not within 1..%d", w.Conns, maxConns)
	case !within(w.Batch, 0, w.Depth):
		return fmt.Errorf("batch %d is not within 0..%d", w.Batch, w.Depth)
	case !within(w.Slow, 0, maxExtra), !within(w.Idle, 0, maxExtra):
		return fmt.Errorf("%d slow and %d idle connections are not within 0..%d", w.Slow, w.Idle, maxExtra)
	case w.Window != 0 && !within(int(w.Window), w.Size, maxSize):
		return fmt.Errorf("a window of %d octets is not within the size, %d, and %d", w.Window, w.Size, maxSize)
	case !within(w.Chunk, 0, maxSize):
		return fmt.Errorf("chunk %d is not within 0..%d", w.Chunk, maxSize)
	case w.ULPDU < 0 || w.Poll < 0:
		return fmt.Errorf("a ULPDU of %d octets and polling for %v cannot be: they are not negative", w.ULPDU, w.Poll)
	}
	return nil
}

func within(n, least, most int) bool { return least <= n && n <= most }

// ownSinks reports whether each outstanding operation has a sink of its own.
func (w *workload) ownSinks() bool { return w.Op == opRead && !w.Shared }

// ownMemory reports whether each outstanding operation has memory of its own at the side that receives: a sink, or a receive.
func (w *workload) ownMemory() bool { return w.ownSinks() || w.Op == opRPCSend }

// sinkLen returns the length of the memory into which the operations of a connection fetch.
func (w *workload) sinkLen() int {
	if w.ownSinks() {
		return max(w.Region, w.Depth*w.Size)
	}
	return w.Region
}

// slots returns the number of operations after which a connection starts again with the first octets.
func (w *workload) slots() int {
	n := max(w.Depth, w.Region/w.Size) // move through all of the region, not only a depth of it
	return n - n%w.Depth
}

// stretch returns the offset in the region at which operation i works.
func (w *workload) stretch(i int) int { return i % (w.Region / w.Size) * w.Size }

// sink returns the offset in the sink at which operation i puts what it fetches.
func (w *workload) sink(i int) int { return i % (w.sinkLen() / w.Size) * w.Size }

// operations returns how many operations a run of n does on all connections. Timed operations are only on the first one.
func (w *workload) operations(n int) int {
	if w.Latency {
		return n
	}
	return n * w.Conns
}

// octets returns the payload of a run of n operations on all connections.
func (w *workload) octets(n int) int {
	octets := w.operations(n) * w.Size
	if w.Duplex || w.Op == opPingPong {
		octets *= 2
	}
	return octets
}

// A driver is the client's end of a workload.
type driver interface {
	// run does n operations on every connection and returns when their effect is
	// known to be at the server. If the workload is about latency, it does them on the
	// first connection only, and appends the time that each took, in nanoseconds.
	run(n int, times []int64) ([]int64, error)
	close() error
}

// A service is the server's end of a workload.
type service interface {
	// port returns the port to which the driver connects.
	port() int
	// run does the server's half of n duplex operations.
	run(n int) error
	close() error
}

// A kind is a way to move data.
type kind struct {
	name  string
	serve func(host string, w workload) (service, error)
	dial  func(addr string, w workload) (driver, error)
}

var kinds = []kind{
	{"iwarp", serveIWARP, dialIWARP},
	{"tcp", serveTCP, dialTCP},
	{"tls", serveTLS, dialTLS},
	{"reqresp", serveReqResp, dialReqResp},
	{"http", serveHTTP, dialHTTP},
	{"grpc", serveGRPC, dialGRPC},
}

func kindOf(name string) (kind, error) {
	for _, k := range kinds {
		if k.name == name {
			return k, nil
		}
	}
	return kind{}, fmt.Errorf("no kind %q", name)
}
