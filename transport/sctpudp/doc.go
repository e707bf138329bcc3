// Package sctpudp implements SCTP in user space over UDP (RFC 9260, RFC 6951), for DDP only. It
// is a back end of package sctp that works on every system.
//
// github.com/pion/sctp implements the SCTP of an established association. This package does what
// pion leaves out, or does not check strictly enough for peers that are not trusted:
//
//   - the four-way handshake with a signed cookie, so that a listener stores nothing about a
//     peer before that peer has proved its address;
//   - the adaptation indication of DDP, which both ends must give (RFC 5043 section 5.1);
//   - the ports;
//   - the check of the verification tag, of the checksum and of the form of each packet.
//
// A dial to a closed UDP port is refused at once on Linux, because ICMP reports it. On other systems,
// and if ICMP is filtered or quotes less than the tag of the INIT, it fails after ten
// attempts. ICMP has no effect on an association.
//
// A [Client] shares one association among all sessions with one peer, each on a pair of
// streams of its own. A [Listener] has one UDP socket for all its associations.
package sctpudp
