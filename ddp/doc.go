// Package ddp implements Direct Data Placement (RFC 5041). It places the octets of each
// segment directly in their destination: in a tagged buffer, named by STag and tagged offset,
// or in the untagged buffer that a queue holds for a message number. It delivers messages in
// the order in which the peer sent them.
//
// The package does no IO and starts no goroutine. Below it is a [transport.LLP], and above it
// an [Upper] layer: RDMAP (package rdmap), or a protocol of the program's own.
//
// # Sending
//
// A [Sender] cuts a [Message] into segments and appends them to the
// LLP's batch:
//
//	m := ddp.Message{QN: 0, MSN: sender.NextMSN(0), Source: spans}
//	err := sender.Send(llp, &m)
//
// Send waits for the network. A goroutine that may not wait calls [Sender.Emit], and later
// flushes the LLP.
//
// # Receiving
//
// A [Stream] processes the segments that the LLP receives. It asks the [Upper] layer about each
// segment, finds the buffer in the [stag.Table] or in a bound [Queue], checks that
// all of the payload may be placed, copies it, and delivers a message after its last
// segment.
//
// The segments of one stream have one order, over all its messages. A message is delivered
// when all segments up to its last one have been processed. A message that the peer leaves
// incomplete therefore delays nothing after it, such as the message that reports the error.
//
// An LLP may pass segments out of order if [Config].Window allows it. They are placed at
// once if possible, and checked again when it is their turn.
//
// # Errors
//
// The first segment that fails ends the receiving half: [Stream.Segment] returns a
// [SegmentError] with all that a report to the peer needs, and drops the rest. The
// sending half stays usable for that report. The owner must end the stream.
package ddp
