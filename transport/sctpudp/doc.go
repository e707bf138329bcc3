// Package sctpudp is SCTP in user space over UDP (RFC 9260, RFC 6951), for DDP alone: a
// back end of package sctp that works on every machine.
//
// The SCTP of an established association is github.com/pion/sctp. What pion does not do,
// or does not do with enough suspicion, is done here, on the path of the packets: the
// four-way handshake with a signed cookie, so that a listener remembers nothing of a peer
// whose address has not been proved; the adaptation indication of DDP, which both ends
// must give (RFC 5043 section 5.1); the ports; and the check of the verification tag, of
// the checksum and of the form of every packet that arrives.
//
// A dial to a closed UDP port is refused at once on Linux, as ICMP tells of it; elsewhere, and
// where ICMP is filtered or quotes less than the tag of the INIT, it takes as long as ten
// attempts do. ICMP has no effect on an association.
//
// A [Client] shares one association among all sessions with one peer, each on a pair of
// streams of its own. A [Listener] has one UDP socket for all its associations.
package sctpudp
