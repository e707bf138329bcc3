package kv

import (
	"bytes"
	"context"
	"encoding/binary"
	"log/slog"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/stag"
)

// A slow disk makes octets durable when the test says so.
type slow chan struct{}

func (s slow) Flush(context.Context, int64, int64) error {
	<-s
	return nil
}

// TestConnectionWhoseCommitTakesLong: the primary's next connection begins when the old one can write nothing more,
// however long the disk takes. The last thing written is an old mark.
func TestConnectionWhoseCommitTakesLong(t *testing.T) {
	bubble(t, func(t *testing.T) {
		rnic, err := iwarp.Open(nil)
		require.NoError(t, err)
		defer func() { require.NoError(t, rnic.Close()) }()
		primary, err := rnic.AllocPD()
		require.NoError(t, err)
		l, err := rnic.Listen(t.Context(), "pipe", "backup", nil)
		require.NoError(t, err)
		s := new(replicated)
		s.pd, err = rnic.AllocPD()
		require.NoError(t, err)
		file, disk := make([]byte, 4096), make(slow)
		s.file, err = s.pd.RegisterMR(file, stag.LocalWrite|stag.RemoteWrite, &iwarp.MROptions{Durable: disk})
		require.NoError(t, err)
		go func() {
			cr, err := l.Accept(t.Context())
			if err == nil {
				s.qp, _ = cr.Accept(t.Context(), &iwarp.QPConfig{PD: s.pd, Commit: new(iwarp.CommitOptions)})
			}
		}()
		qp, err := rnic.Dial(t.Context(), "pipe", "backup", &iwarp.QPConfig{PD: primary, Commit: new(iwarp.CommitOptions)})
		require.NoError(t, err)
		synctest.Wait()
		go func() {
			_ = qp.CommitThen(t.Context(), iwarp.FollowOn{At: s.file.Advertise(0, 8), Value: [8]byte{7: 1}}, s.file.Advertise(64, 8))
		}()
		synctest.Wait()
		require.NoError(t, qp.Abort())

		closed := make(chan error, 1)
		go func() { closed <- s.close() }()
		time.Sleep(time.Minute)
		require.Empty(t, closed, "the Commit is under way")
		close(disk)
		require.NoError(t, <-closed)
		require.NotZero(t, file[0]|file[7], "the mark was written before")
	})
}

// TestPrimaryThatComesAgainAndAgain: the backup still waits for the disk on behalf of an earlier connection. Only the
// newest connection waits for its turn.
func TestPrimaryThatComesAgainAndAgain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var waits atomic.Bool
		disk := make(chan struct{})
		w := newWorld(t, "pipe")
		w.hold = func(s stage) {
			if s == stageDurable && waits.Load() {
				<-disk
			}
		}
		w.start()
		c := w.client("alpha")
		waits.Store(true)
		require.ErrorIs(t, c.Put(w.context(), []byte("a"), []byte("1")), ErrUncertain)
		time.Sleep(time.Minute)
		stacks := make([]byte, 1<<22)
		stacks = stacks[:runtime.Stack(stacks, true)]
		require.LessOrEqual(t, strings.Count(string(stacks), ".serveReplication("), 2)
		waits.Store(false)
		close(disk)
		require.NoError(t, w.until(func() bool { return c.Put(w.quick(), []byte("a"), []byte("2")) == nil }))
		w.holds(c, "a", "2")
	})
}

// TestCatchUpThatIsCutShort: Close, or another connection, ends the catch-up. That is no disk error, and the log reports
// none.
func TestCatchUpThatIsCutShort(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, "pipe")
		w.startBackup()
		told, log := new(bytes.Buffer), w.backup.log
		w.backup.cfg.Logger = slog.New(slog.NewTextHandler(told, nil))
		m := mark{generation: 1}
		_, err := log.file.WriteAt(binary.NativeEndian.AppendUint64(nil, m.word()), 0)
		require.NoError(t, err)
		s := &replicated{r: w.backup}
		over, cancel := context.WithCancel(w.context())
		cancel()
		require.ErrorIs(t, s.catchUp(over), context.Canceled)
		require.Zero(t, log.mark, "it is not shown")
		require.Empty(t, told.String())
		require.NoError(t, s.catchUp(w.context()))
		require.Equal(t, m, log.mark)
	})
}

// TestBackupWhoseLogIsDamaged: the backup ends before it shows what it cannot read. The change is uncertain.
func TestBackupWhoseLogIsDamaged(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, "pipe")
		var damages atomic.Bool
		w.hold = func(s stage) {
			if s == stageDurable && damages.Load() {
				w.scribble("backup", w.backup.log.at(w.backup.log.mark)+4, []byte("damaged"))
			}
		}
		w.start()
		c := w.client("alpha")
		w.put(c, "a", "old")
		damages.Store(true)
		require.ErrorIs(t, c.Put(w.context(), []byte("a"), []byte("new")), ErrUncertain)
		<-w.backup.Failed()
		require.ErrorContains(t, w.backup.Err(), "the log is damaged")
		require.NoError(t, w.backup.Close())
	})
}
