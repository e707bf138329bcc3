package target

import (
	"bytes"
	"context"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/examples/nvme/capsule"
	"github.com/goiwarp/iwarp/stag"
)

var errDeadline = os.ErrDeadlineExceeded

// A forger answers two RDMA Reads of three LBAs each, whose buffers have room for four.
type forger struct {
	*wire
	read, other asked
	foreign     stag.STag // of a buffer of another queue
	receives    stag.STag // where the commands are
}

// asks3 is the length of the Reads.
const asks3 = 3 * lba

// untouched is the previous contents of the buffers.
const untouched = 0xee

// forged are answers that the target did not request.
var forged = map[string]func(f *forger){
	"longer": func(f *forger) { f.placed(f.read.sink, f.read.to, true, pattern(asks3+4, 1)) },
	"longer, in two segments": func(f *forger) {
		f.placed(f.read.sink, f.read.to, false, pattern(asks3, 1))
		f.placed(f.read.sink, f.read.to+asks3, true, pattern(4, 1))
	},
	"shorter":           func(f *forger) { f.placed(f.read.sink, f.read.to, true, pattern(asks3-4, 1)) },
	"shifted on":        func(f *forger) { f.placed(f.read.sink, f.read.to+4, true, pattern(asks3, 1)) },
	"shifted back":      func(f *forger) { f.placed(f.read.sink, f.read.to-4, true, pattern(asks3, 1)) },
	"behind the octets": func(f *forger) { f.placed(f.read.sink, f.read.to+asks3, true, pattern(lba, 1)) },
	"far away":          func(f *forger) { f.placed(f.read.sink, ^uint64(0)-10, true, pattern(100, 1)) },
	"with a hole": func(f *forger) {
		f.placed(f.read.sink, f.read.to, false, pattern(lba, 1))
		f.placed(f.read.sink, f.read.to+2*lba, true, pattern(lba, 1))
	},
	"for the second Read first":      func(f *forger) { f.placed(f.other.sink, f.other.to, true, pattern(asks3, 1)) },
	"to a buffer of another queue":   func(f *forger) { f.placed(f.foreign, 0, true, pattern(asks3, 1)) },
	"to the receives":                func(f *forger) { f.placed(f.receives, 0, true, pattern(asks3, 1)) },
	"to an STag that does not exist": func(f *forger) { f.placed(f.read.sink^0x5500, f.read.to, true, pattern(asks3, 1)) },
	"to another key":                 func(f *forger) { f.placed(f.read.sink^1, f.read.to, true, pattern(asks3, 1)) },
	"late": func(f *forger) {
		for _, r := range []asked{f.read, f.other} {
			f.placed(r.sink, r.to, true, bytes.Repeat([]byte{untouched}, asks3))
		}
		f.response()
		f.response()
		f.placed(f.read.sink, f.read.to, true, pattern(asks3, 1))
	},
}

// TestNVME_28_ForgedResponses: a Read Response other than the requested one ends its queue. Nothing is placed outside
// the octets of the answered Read, and its command is not carried out.
func TestNVME_28_ForgedResponses(t *testing.T) {
	for name, forge := range forged {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(t *testing.T) { forgeOne(t, name, forge) })
		})
	}
}

func forgeOne(t *testing.T, name string, forge func(f *forger)) {
	w := newWorld(t, "pipe", &Config{NoCRC: true}, nil)
	s := newHost(t, w.addr).connect(0)
	s.io = append(s.io, nil) // queue 1 is the forger's
	other := s.queue(8, nil)
	require.Equal(t, capsule.Success, other.write(900, pattern(asks3, 9)).Status) // has a buffer now
	f := &forger{wire: w.wire(t, s)}
	for i := range uint64(2) {
		f.send(rw(capsule.OpWrite, 3*i, 3, capsule.KeyedSGL(1, 0, asks3, false)))
	}
	f.read, f.other = f.asks(), f.asks()
	require.Equal(t, asks3, f.read.size)
	require.NotEqual(t, f.read.sink, f.other.sink)
	w.settled()
	q, o := w.queue(1), w.queue(2)
	bufs := append(append([]*buffer{}, q.bufs.all...), o.bufs.all...)
	var read *buffer
	for _, b := range bufs {
		fill(b.mem, untouched)
		switch {
		case b.mr.STag() == f.read.sink:
			read = b
			require.Equal(t, 4*lba, len(b.mem))
		case b.mr.STag() != f.other.sink && len(b.mem) >= asks3:
			f.foreign = b.mr.STag()
		}
	}
	require.NotNil(t, read)
	require.NotZero(t, f.foreign)
	f.receives = q.recvs.mr.STag()
	commands := bytes.Clone(q.recvs.mem)

	forge(f)
	f.ends(name)
	time.Sleep(terminateWait) // the forger does not close its end
	require.Equal(t, 2, w.settled().Queues)
	require.True(t, bytes.Equal(commands, q.recvs.mem))
	for _, b := range bufs {
		from := 0
		if b == read {
			from = asks3
		}
		require.Equal(t, len(b.mem)-from, bytes.Count(b.mem[from:], []byte{untouched}), "buffer %d", b.id)
	}
	got := make([]byte, 6*lba)
	require.NoError(t, w.b.ReadAt(context.Background(), got, 0))
	if name != "late" {
		require.Equal(t, 6*lba, bytes.Count(got, []byte{0}), "nothing is written")
	}
	require.Equal(t, capsule.Success, other.read(900, got[:asks3]).Status)
	require.Equal(t, pattern(asks3, 9), got[:asks3])
}

// terminateWait is longer than the target waits for the peer's end after its own.
const terminateWait = 10 * time.Second

func fill(p []byte, v byte) {
	for i := range p {
		p[i] = v
	}
}
