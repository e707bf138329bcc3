// Package mpa is Marker PDU Aligned framing for TCP (RFC 5044) with the enhanced
// connection set-up of RFC 6581: it makes a [transport.LLP], which carries whole
// DDP segments, of a [transport.Stream], which carries octets.
//
// A connection begins with one frame each way, the Request of the initiator
// ([Connect]) and the Reply of the responder ([ReadRequest], then
// [Request.Accept] or [Request.Reject]). They settle the protocol revision, CRC,
// Markers, and with revision 2 the depths of the read queues and the message that
// opens the connection (RTR). Then both directions carry FPDUs and nothing else
// ([Conn]).
//
// An FPDU, Markers left out (RFC 5044 section 4):
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|          ULPDU_Length         |                               |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+                               |
//	|                        ULPDU = one DDP segment                |
//	|                               +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                               |          PAD (0-3 octets)     |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                              CRC                              |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//
// The frames, the encoder and the decoder are pure; only the files conn*.go read
// and write.
package mpa
