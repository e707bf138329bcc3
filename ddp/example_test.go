package ddp_test

import (
	"errors"
	"fmt"
	"io"

	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/internal/recordpipe"
	"github.com/goiwarp/iwarp/stag"
	"github.com/goiwarp/iwarp/transport"
)

// noteQueue is the untagged queue for notes.
const noteQueue ddp.QN = 7

// A library is an upper layer other than RDMAP: its peer writes pages directly into its
// memory, and a note after them says what they are.
type library struct {
	*ddp.Stream
	ddp.NoBatch
	notes [][]byte // buffers for the notes to come
}

// Tagged returns the right that the peer needs for a page.
func (*library) Tagged(ddp.TaggedHeader, int) (stag.Access, error) { return stag.RemoteWrite, nil }

// Untagged accepts every note.
func (*library) Untagged(ddp.UntaggedHeader, int) error { return nil }

// DeliverTagged reports that a page has arrived. The two ends define the meaning of RsvdULP.
func (*library) DeliverTagged(h ddp.TaggedHeader) error {
	fmt.Println("page", h.RsvdULP)
	return nil
}

// PlacedTagged is for a Stream with a Window, which this one lacks.
func (*library) PlacedTagged(ddp.TaggedHeader, int) error { return nil }

// PredictTagged predicts nothing: the peer writes wherever it wants.
func (*library) PredictTagged(int) (h ddp.TaggedHeader, access stag.Access, n uint64, ok bool) {
	return h, 0, 0, false
}

// The library is also the Queue of its notes.

func (l *library) Posted() int { return len(l.notes) }

func (l *library) Buffer(k int, _ *ddp.UntaggedHeader) []stag.Span {
	return []stag.Span{{Mem: l.notes[k], Len: len(l.notes[k])}}
}

func (l *library) Missing() error { return nil } // a note too many ends the stream

func (l *library) Deliver(_ ddp.UntaggedHeader, n uint32) error {
	fmt.Printf("note %q\n", l.notes[0][:n])
	l.notes = l.notes[1:]
	return nil
}

// Segments makes the library a [transport.Placer].
func (l *library) Segments(seq uint64, batch transport.SegmentBatch) error {
	return transport.EachSegment(l, seq, batch)
}

// DDP carries protocols other than RDMAP. They choose what their queues and RsvdULP mean,
// and which rights a peer needs; the lower layer may be any [transport.LLP], such as a
// connection of package mpa. This one is in memory and delivers segments in any order.
func Example() {
	near, far := recordpipe.New(recordpipe.Options{MaxULPDU: 64, Window: 8, Seed: 1})

	// The receiving end registers memory and posts a buffer for one note.
	table := stag.NewTable()
	memory := make([]byte, 1000)
	scope := stag.Scope{PD: 1, Stream: 1}
	region, err := table.Register(memory, stag.Options{Access: stag.LocalWrite | stag.RemoteWrite, Scope: scope})
	check(err)
	l := &library{notes: [][]byte{make([]byte, 100)}}
	l.Stream = ddp.New(ddp.Config{Table: table, Scope: scope, Upper: l, Window: 64})
	l.Bind(noteQueue, l)

	// The sending end knows the STag, by whatever means the protocol has for that.
	text := []byte("Call me Ishmael. Some years ago - never mind how long precisely -")
	var s ddp.Sender
	check(s.Send(far, &ddp.Message{
		Tagged: true, RsvdULP: 1, STag: region.STag(), TO: 500,
		Source: []stag.Span{{Mem: text, Len: len(text)}},
	}))
	title := []byte("Moby Dick")
	check(s.Send(far, &ddp.Message{
		QN: noteQueue, MSN: s.NextMSN(noteQueue),
		Source: []stag.Span{{Mem: title, Len: len(title)}},
	}))
	check(far.CloseSend())

	for err == nil {
		err = near.Receive(l, transport.Park) // what has come by now
	}
	if !errors.Is(err, io.EOF) {
		panic(err)
	}
	fmt.Printf("%s...\n", memory[500:516])
	// Output:
	// page 1
	// note "Moby Dick"
	// Call me Ishmael....
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
