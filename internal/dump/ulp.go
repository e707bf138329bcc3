package dump

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/goiwarp/iwarp/ddp"
)

// The protocols above RDMAP whose Sends are decoded.
const (
	protocolNVMe    = "nvme"
	protocolRPC     = "rpcrdma"
	protocolRsocket = "rsocket"
	protocolRMA     = "rma"
)

// Protocols returns the names that Config.Protocols may contain.
func Protocols() []string { return []string{protocolNVMe, protocolRMA, protocolRPC, protocolRsocket} }

// ports maps the ports that IANA has assigned to protocols.
var ports = map[uint16]string{4420: protocolNVMe, 20049: protocolRPC}

// A ulp is what is known about the protocol above RDMAP of a connection.
type ulp struct {
	protocol  string // "": not known
	initiator int    // the direction of the initiator

	fin       bool    // the initiator's first Send is a FIN of package cm
	begun     [2]bool // a first message was seen, or may have been
	nvmeAsked bool
	qid       uint16
	asked     [2]bool // the private data are those of rsocket
	bigEndian [2]bool
}

func (u *ulp) named(cfg Config, port uint16) {
	if u.protocol = ports[port]; cfg.Protocols[port] != "" {
		u.protocol = cfg.Protocols[port]
	}
}

// lose records that octets of a direction are missing.
func (u *ulp) lose(dir int) {
	u.begun[dir] = true
	if dir == u.initiator {
		u.fin = false
	}
}

// send decodes a Send; b is the payload of its first segment. It returns nil if nothing is known about it.
func (u *ulp) send(dir int, h *ddp.UntaggedHeader, b []byte) *Block {
	first := !u.begun[dir]
	if u.fin && dir == u.initiator && first {
		u.fin = false // the next Send is the first of the application
		if block, _, ok := cmBlock(b); ok {
			return &block
		}
	}
	u.begun[dir] = true
	if first && u.protocol == "" && isHello(b) && h.Last {
		u.protocol = protocolRMA
	}
	switch u.protocol {
	case protocolNVMe:
		return u.nvme(dir, b)
	case protocolRPC:
		return rpcMessage(b, h.Last)
	case protocolRsocket:
		return u.rsocket(dir, b)
	case protocolRMA:
		return rmaMessage(b)
	}
	return nil
}

// rsocketOps names the kinds of rsocket messages, in bits 31 to 29.
var rsocketOps = [8]string{0: "DATA", 4: "SGL", 6: "IOMAP_SGL", 7: "CTRL"}

// rsocketControls are the numbers of a CTRL.
var rsocketControls = []string{"DISCONNECT", "KEEPALIVE", "SHUTDOWN"}

func (u *ulp) rsocket(dir int, b []byte) *Block {
	if len(b) != 4 {
		return nil
	}
	v := binary.LittleEndian.Uint32(b)
	if u.bigEndian[dir] {
		v = binary.BigEndian.Uint32(b)
	}
	op, n := v>>29, v&(1<<29-1)
	name := rsocketOps[op]
	switch {
	case name == "":
		return &Block{protocolRsocket, fmt.Sprintf("operation %d", op), Fields{{"number", n}}}
	case op == 7 && int(n) < len(rsocketControls):
		return &Block{protocolRsocket, name, Fields{{"what", rsocketControls[n]}}}
	case op == 0:
		return &Block{protocolRsocket, name, Fields{{"octets", n}}}
	}
	return &Block{protocolRsocket, name, Fields{{"credits", n}}}
}

// IsProtocol reports whether a name is one of Protocols.
func IsProtocol(name string) bool { return slices.Contains(Protocols(), name) }
