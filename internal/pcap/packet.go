package pcap

import (
	"errors"
	"time"
)

// A Packet is one captured packet. Data begins with the header of the link.
type Packet struct {
	Time   time.Time // zero: the capture does not tell
	Link   LinkType
	Number int   // of the capture, from 1 on
	Offset int64 // where the packet's header is in the capture
	Data   []byte
}

var errFormat = errors.New("pcap: not a capture file")
