package kv

import (
	"context"
	"encoding/binary"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/stag"
)

// A plodding disk makes 4 MiB durable in a second.
type plodding struct{}

func (plodding) Flush(_ context.Context, _, n int64) error {
	time.Sleep(time.Duration(n) * time.Second >> 22)
	return nil
}

// TestLongLogAndSlowDisk: the backup's log is made durable in steps, none of which takes too long. A single step would
// take too long, each time that the primary starts again. After a commit only what was written since is made durable.
func TestLongLogAndSlowDisk(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const half = 40 << 20
		rnic, err := iwarp.Open(nil)
		require.NoError(t, err)
		defer func() { require.NoError(t, rnic.Close()) }()
		pd, err := rnic.AllocPD()
		require.NoError(t, err)
		listener, err := rnic.Listen(t.Context(), "pipe", "backup", nil)
		require.NoError(t, err)
		file := make([]byte, logStart+half)
		backup, err := pd.RegisterMR(file, stag.LocalWrite|stag.RemoteWrite, &iwarp.MROptions{Durable: plodding{}})
		require.NoError(t, err)
		go answerMarks(t.Context(), listener, pd)

		l := &link{named: true, buf: make([]byte, linkHead+maxBatch), theirs: welcome{file: backup.Advertise(0, len(file))}}
		l.mr, err = pd.RegisterMR(l.buf, stag.LocalWrite, nil)
		require.NoError(t, err)
		l.qp, err = rnic.Dial(t.Context(), "pipe", "backup", &iwarp.QPConfig{PD: pd, Commit: new(iwarp.CommitOptions)})
		require.NoError(t, err)
		log := &logFile{half: half, mark: mark{generation: 2, tail: half}}
		batch := make([]byte, maxBatch)
		for at := int64(0); at < half; at += maxBatch {
			batch[0] = byte(at >> 20)
			require.NoError(t, l.write(t.Context(), logStart+at, batch), "octet %d", at)
		}
		require.NoError(t, l.commit(t.Context(), log))
		for at := 0; at < half; at += maxBatch {
			require.Equal(t, byte(at>>20), file[logStart+at])
		}
		require.Equal(t, log.mark, markOf(binary.NativeEndian.Uint64(file)))

		log.mark = mark{generation: 3, tail: maxBatch}
		require.NoError(t, l.write(t.Context(), logStart, batch))
		began := time.Now()
		require.NoError(t, l.commit(t.Context(), log))
		require.InDelta(t, maxBatch*time.Second>>22, time.Since(began), float64(time.Millisecond))
		require.NoError(t, l.qp.Abort())
	})
}

// answerMarks accepts a primary's connection, and answers each mark.
func answerMarks(ctx context.Context, l *iwarp.Listener, pd *iwarp.PD) {
	cr, err := l.Accept(ctx)
	if err != nil {
		return
	}
	qp, err := cr.Accept(ctx, &iwarp.QPConfig{PD: pd, Commit: new(iwarp.CommitOptions)})
	if err != nil {
		return
	}
	mr, err := pd.RegisterMR(make([]byte, 8), stag.LocalWrite, nil)
	if err != nil {
		return
	}
	for err == nil {
		var n int
		if n, err = qp.Recv(ctx, mr.Slice(0, 8)); err == nil {
			err = qp.Send(ctx, mr.Slice(0, n))
		}
	}
}
