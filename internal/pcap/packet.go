package pcap

import (
	"errors"
	"time"
)

// A Packet is one captured packet. Data begins with the header of the link.
type Packet struct {
	Time   time.Time // zero: the capture contains no time
	Link   LinkType
	Number int   // in the capture, from 1 on
	Offset int64 // of the packet's header in the capture
	Data   []byte
}

var errFormat = errors.New("pcap: not a capture file")
