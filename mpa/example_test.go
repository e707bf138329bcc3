package mpa_test

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/transport"
)

// A printer receives the segments, as package ddp does in a real stack.
type printer struct{ transport.NoPrediction }

func (printer) Segment(seq uint64, ulpdu []byte) error {
	fmt.Printf("%d: %s\n", seq, ulpdu)
	return nil
}

func (p printer) Segments(seq uint64, batch transport.SegmentBatch) error {
	return transport.EachSegment(p, seq, batch)
}

// MPA carries whole records over a byte stream, here one in memory: an initiator sends a
// Request, a responder accepts it, and segments arrive as they were sent.
func Example() {
	ctx := context.Background()
	near, far := transport.Pipe(transport.PipeOptions{})

	received := make(chan error)
	go func() {
		request, err := mpa.ReadRequest(ctx, transport.NewStream(far, nil))
		check(err)
		conn, _, err := request.Accept(ctx, mpa.Options{}, 0, 0, []byte("welcome"))
		check(err)
		for err == nil {
			err = conn.Receive(printer{}, transport.Park) // what one read has brought
		}
		received <- err
	}()

	conn, terms, err := mpa.Connect(ctx, transport.NewStream(near, nil), mpa.Options{}, 0, 0, nil)
	check(err)
	fmt.Printf("%s; revision %d, CRC %v\n", terms.PeerPrivateData, terms.Revision, terms.CRC)
	conn.Append([]byte("header and "), [][]byte{[]byte("payload")}, false)
	conn.Append([]byte("another segment"), nil, false)
	check(conn.Flush(true)) // both in one write
	check(conn.CloseSend())
	fmt.Println(errors.Is(<-received, io.EOF))
	check(conn.Close())
	// Output:
	// welcome; revision 2, CRC true
	// 0: header and payload
	// 1: another segment
	// true
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
