// Package wiretest plays the peer of a connection in tests, octet by octet.
//
// A test holds a conversation: it makes the library's end of a connection and a [Peer] for
// the other end, the library acts, and the Peer says what the wire must show. Each Want
// method takes, as its first argument, the expectation in English, which a failure prints:
//
//	p := wiretest.Dial(t, "pipe", addr, wiretest.Hex("40 01 00 00"))
//	p.WantReply("the Reply accepts, with CRCs", "40 01 00 00")
//	p.Send(wiretest.Write(mr.STag(), 0, "hello"), wiretest.Send(1, 0, ""))
//	p.WantSegment("a Send answers", "41 43 00000000 00000000 00000001 00000000", 'h', 'i')
//	p.WantEOF("the QP ends")
//
// The Peer uses the framing and headers of package octets. It computes CRCs; it sends Markers only through [Marked]. [Patience]
// bounds every wait. Over the network "pipe" a conversation runs in virtual time (testing/synctest).
//
// A conversation that is mostly data is a text file, which [RunScript] runs. Only tests may
// import this package. It knows no verbs, so that the tests of every layer can use it.
package wiretest
