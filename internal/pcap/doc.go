// Package pcap reads and writes packet captures, as far as the library needs this: the
// classic pcap format with IPv4, IPv6 and TCP; a [Reader] also reads pcapng. A [Writer]
// makes the files of traced connections; [Streams] reassembles the captures in testdata,
// which tests of other packages read as ../internal/pcap/testdata/X.pcap.
package pcap

// A LinkType says with which header a captured packet begins.
type LinkType uint32

// Link types that the package understands.
const (
	LinkNull     LinkType = 0 // loopback of BSD and macOS
	LinkEthernet LinkType = 1
	LinkRaw      LinkType = 101 // an IP header
	LinkLoop     LinkType = 108 // loopback of OpenBSD
	LinkSLL      LinkType = 113 // Linux cooked capture
	LinkIPv4     LinkType = 228 // an IP header of version 4
	LinkIPv6     LinkType = 229 // an IP header of version 6
	LinkSLL2     LinkType = 276 // Linux cooked capture, version 2
)

const (
	magicMicro = 0xa1b2c3d4 // times in microseconds
	magicNano  = 0xa1b23c4d // times in nanoseconds

	fileHeaderLen   = 24
	recordHeaderLen = 16
	snapLen         = 262144 // the customary maximum
)
