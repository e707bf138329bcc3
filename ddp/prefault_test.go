package ddp

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/internal/recordpipe"
	"github.com/goiwarp/iwarp/stag"
	"github.com/goiwarp/iwarp/transport"
)

// A prefaulting LLP notes what it is told to bring into memory.
type prefaulting struct {
	transport.LLP
	prefaulted, appended int
	order                bool // nothing was appended before it was prefaulted
}

func (f *prefaulting) Prefault(payload [][]byte) {
	for _, p := range payload {
		f.prefaulted += len(p)
	}
}

func (f *prefaulting) Append(head []byte, payload [][]byte, stage bool) bool {
	for _, p := range payload {
		f.appended += len(p)
	}
	f.order = f.order && f.prefaulted >= f.appended
	return true
}

type flusher struct{}

func (flusher) Flush(context.Context, int64, int64) error { return nil }

// TestSlowSourcesArePrefaulted: all of them before they are appended, and no others.
func TestSlowSourcesArePrefaulted(t *testing.T) {
	a, b := recordpipe.New(recordpipe.Options{MaxULPDU: 1000})
	defer a.Close()
	defer b.Close()
	table := stag.NewTable()
	for _, durable := range []bool{true, false} {
		o := stag.Options{Access: stag.LocalWrite | stag.RemoteRead}
		if durable {
			o.Flusher = flusher{}
		}
		r, err := table.Register(make([]byte, 5000), o)
		require.NoError(t, err)
		want := map[bool]int{true: 5000}[durable]
		f := &prefaulting{LLP: a, order: true}
		done, err := new(Sender).Emit(f, &Message{Tagged: true, Source: []stag.Span{{Region: r, Len: 5000}}})
		require.NoError(t, err)
		require.True(t, done)
		require.Equal(t, []int{want, 5000}, []int{f.prefaulted, f.appended})
		require.Equal(t, durable, f.order)

		f = &prefaulting{LLP: a, order: true}
		w := new(Sender).SegmentSender(f, 0)
		require.True(t, w.EmitTagged(0, 1, 0, &stag.Span{Region: r, Len: 500}, false))
		w.Done()
		require.Equal(t, []int{want / 10, 500}, []int{f.prefaulted, f.appended})
	}
}
