package powercut

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/goiwarp/iwarp/commit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestRecordsDiffer(t *testing.T) {
	a, b := make([]byte, slotLen), make([]byte, slotLen)
	for n := range uint64(200) {
		first := record(a, 1, n)
		require.Equal(t, first, record(b, 1, n), "a record can be made again")
		require.NotEqual(t, first, record(b, 2, n), "that of another connection is another")
		require.NotEqual(t, first, record(b, 1, n+slots))
		require.LessOrEqual(t, slotOf(n)+len(first), areaLen)
	}
}

// put writes a record to an area, as the wire would.
func put(area []byte, l *ledger, n uint64) { record(area[slotOf(n):slotOf(n)+slotLen], l.stream, n) }

func setTail(area []byte, n uint64) { binary.LittleEndian.PutUint64(area, n) }

// written returns a ledger of the connection after 60 records, of which 56 were acknowledged, and the area as it should
// be.
func written(stream int) (*ledger, []byte) {
	l, area := newLedger(stream), make([]byte, areaLen)
	for range 60 {
		n := l.begin()
		put(area, l, n)
		if n <= 56 {
			l.acknowledge(n)
		}
	}
	if l.tailed {
		setTail(area, 56)
	}
	return l, area
}

func TestNothingIsLostOfWhatIsThere(t *testing.T) {
	for stream := range 2 {
		l, area := written(stream)
		l.check(area)
		require.Zero(t, l.lost)
		require.Equal(t, 56, l.acknowledged)
	}
}

func TestAnAcknowledgedRecordIsMissed(t *testing.T) {
	l, area := written(1)
	area[slotOf(30)] ^= 1
	l.check(area)
	require.Equal(t, 1, l.lost, "one octet is enough")
	l.check(area)
	require.Equal(t, 1, l.lost, "it counts once")
}

func TestARecordThatIsWrittenOverIsNotMissed(t *testing.T) {
	l, area := written(1)
	n := l.begin()
	clear(area[slotOf(n) : slotOf(n)+slotLen])
	clear(area[slotOf(58) : slotOf(58)+slotLen])
	l.check(area)
	require.Zero(t, l.lost, "nor is one that was not acknowledged")
	l.acknowledge(n)
	l.check(area)
	require.Equal(t, 1, l.lost)
}

func TestTheTailVouchesForRecords(t *testing.T) {
	l, area := written(0)
	setTail(area, 59)
	l.check(area)
	require.Zero(t, l.lost, "they are there, though the requester has not heard of it")
	l, area = written(0)
	setTail(area, 59)
	area[slotOf(58)] ^= 1
	l.check(area)
	require.Equal(t, 1, l.lost, "it names a record that is damaged")
}

func TestTheTailDoesNotVouchForRecordsOfAnEarlierLife(t *testing.T) {
	l, area := written(0)
	for n := uint64(57); n < 61; n++ { // they were not acknowledged, and did not survive
		clear(area[slotOf(n) : slotOf(n)+slotLen])
	}
	l.check(area)
	require.Zero(t, l.lost)
	for range 2 {
		put(area, l, l.begin())
	}
	setTail(area, 62)
	l.check(area)
	require.Zero(t, l.lost)
	require.EqualValues(t, 62, l.tail)
	area[slotOf(61)] ^= 1
	l.check(area)
	require.Equal(t, 1, l.lost, "but for those of its own")
	require.Equal(t, []string{"connection 0: record 61 is not whole; the tail is 62, this life's first record 63"}, l.news)
}

func TestALostTailIsALoss(t *testing.T) {
	for _, tail := range []uint64{0, 55, 61, 1 << 60} {
		l, area := written(0)
		setTail(area, tail)
		l.check(area)
		require.Equal(t, 1, l.lost, "tail %d", tail)
	}
}

func TestForget(t *testing.T) {
	l, area := written(0)
	l.forget()
	require.Equal(t, slots-4, l.lost, "all but those under way")
	clear(area)
	l.check(area)
	require.Equal(t, slots-4, l.lost, "a new file is empty")
}

// A file keeps its synced contents apart.
type file struct {
	mu          sync.Mutex
	now, synced []byte
	err         error
	writes      int    // from now on, until kill
	kill        func() // is called; nil: never
}

func newFile() *file { return &file{now: make([]byte, FileSize), synced: make([]byte, FileSize)} }

func (f *file) Size() int64 { return FileSize }

func (f *file) Atomic() bool { return true }

func (f *file) ReadAt(p []byte, off int64) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return copy(p, f.now[off:]), io.EOF
}

func (f *file) WriteAt(p []byte, off int64) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.writes--; f.writes == 0 && f.kill != nil {
		f.kill()
	}
	return copy(f.now[off:], p), nil
}

func (f *file) Sync() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	copy(f.synced, f.now)
	return f.err
}

// crash leaves only what was synced.
func (f *file) crash() {
	f.mu.Lock()
	defer f.mu.Unlock()
	copy(f.now, f.synced)
}

// someWrites is more than may be sent without an acknowledgement.
const someWrites = 4 * slots

// lives runs one life of the target, which ends after so many writes, or, if that is 0, not by itself.
func lives(t *testing.T, r *Requester, f *file, sync commit.SyncBuffer, writes int) error {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	port, err := r.Listen(ctx)
	require.NoError(t, err)
	defer f.crash()
	life, kill := context.WithCancel(ctx)
	target := make(chan error, 1)
	backing, err := commit.NewBuffer(sync)
	require.NoError(t, err)
	f.writes, f.kill = writes, kill
	go func() { target <- Serve(life, fmt.Sprintf("127.0.0.1:%d", port), backing, backing) }()
	require.NoError(t, r.Meet(ctx))
	err = r.Run(ctx)
	r.Part()
	kill()
	require.NoError(t, <-target)
	return err
}

func TestLives(t *testing.T) {
	r, err := NewRequester()
	require.NoError(t, err)
	defer func() { require.NoError(t, r.Close()) }()
	f := newFile()
	for range 3 {
		require.NoError(t, lives(t, r, f, f, someWrites))
	}
	acknowledged, lost := r.Records()
	require.NotZero(t, acknowledged)
	require.Zero(t, lost)
	f.err = io.ErrUnexpectedEOF
	require.ErrorIs(t, lives(t, r, f, f, 0), commit.ErrFailed, "a Commit that fails is no cut")
	r.Forget()
	_, lost = r.Records()
	require.NotZero(t, lost)
}

// A forgetful file ignores syncs.
type forgetful struct{ *file }

func (forgetful) Sync() error { return nil }

func TestForgetfulTarget(t *testing.T) {
	r, err := NewRequester()
	require.NoError(t, err)
	defer func() { require.NoError(t, r.Close()) }()
	f := newFile()
	for range 2 {
		require.NoError(t, lives(t, r, f, forgetful{f}, someWrites))
	}
	_, lost := r.Records()
	require.NotZero(t, lost)
}

func TestBackingsTakeTurns(t *testing.T) {
	for boot := range 6 {
		require.True(t, strings.Contains(Backings(), BackingOf(boot)))
		require.NotEqual(t, BackingOf(boot), BackingOf(boot+1))
	}
}
