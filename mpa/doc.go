// Package mpa implements Marker PDU Aligned framing for TCP (RFC 5044) with the enhanced
// connection set-up of RFC 6581. It turns a [transport.Stream], which carries octets, into a
// [transport.LLP], which carries whole DDP segments.
//
// # Set-up
//
// A connection begins with one frame each way: the Request of the initiator and the Reply of
// the responder. They settle the protocol revision, CRC, Markers, and with revision 2 the
// depths of the read queues (IRD and ORD) and the message that opens the connection (RTR).
// Each may carry private data of the applications. The initiator:
//
//	conn, terms, err := mpa.Connect(ctx, stream, mpa.Options{}, ird, ord, privateData)
//
// The responder reads the Request, and accepts or rejects it:
//
//	request, err := mpa.ReadRequest(ctx, stream)
//	conn, terms, err := request.Accept(ctx, mpa.Options{}, ird, ord, privateData)
//
// # Frames
//
// From then on both directions of the [Conn] carry FPDUs (framed PDUs) and nothing else. The
// PDU inside is the ULPDU (upper layer PDU); the largest that fits a TCP segment is the
// [MULPDU]. An FPDU without Markers (RFC 5044 section 4):
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
// The CRC is a CRC32c; it is unused, and sent as zero, if both sides have waived it. If the receiver has
// requested Markers, every 512 octets of the stream contain one, which points back to the start of its FPDU.
//
// # Concurrency and errors
//
// As with any [transport.LLP], one goroutine at a time may receive from a Conn, and one
// may send. A violation by the peer is a [transport.Fault] with the code of the
// Terminate that reports it; a refused connection is a [RejectError].
package mpa
