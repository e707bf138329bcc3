package host

import (
	"context"
	"strconv"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/examples/nvme/capsule"
)

func TestHOST_22_Discover(t *testing.T) {
	virtual(t, func(t *testing.T) {
		tg := newTarget(t)
		entries, err := Discover(context.Background(), tg.addr, pipeOptions(t))
		require.NoError(t, err)
		_, want, err := capsule.ParseDiscoveryLog(tg.log)
		require.NoError(t, err)
		require.Equal(t, want, entries)
		require.Len(t, entries, 2)

		logs := tg.commands(capsule.OpGetLogPage)
		require.Len(t, logs, 2)
		for i, name := range []string{"get-log-70-1024", "get-log-70-3072"} {
			linux, _, err := capsule.ParseSQE(goldenItem(t, 0, name))
			require.NoError(t, err)
			m := capsule.ParseGetLogPage(&logs[i])
			require.Equal(t, capsule.ParseGetLogPage(&linux).Length(), m.Length())
			require.Equal(t, i == 0, m.RAE)
		}
		require.Equal(t, []uint32{0x460060, 0x460061, 0x464061}, tg.ccs())
		require.Equal(t, capsule.DiscoveryNQN, tg.connects[0].SubNQN)
		sqe := tg.commands(capsule.OpFabrics)[0]
		require.Zero(t, capsule.ParseConnect(&sqe).KATO)
		synctest.Wait() // the other end of a connection ends a moment later
		require.Empty(t, tg.live())
	})
}

// discoveryLog returns a log of n entries.
func discoveryLog(n int, genctr uint64) []byte {
	log := make([]byte, capsule.DiscoveryHeaderSize+n*capsule.DiscoveryEntrySize)
	capsule.DiscoveryHeader{GENCTR: genctr, NUMREC: uint64(n)}.Put(log)
	for i := range n {
		e := capsule.DiscoveryEntry{TRTYPE: capsule.TransportRDMA, SUBTYPE: capsule.SubtypeNVM, SubNQN: "nqn." + strconv.Itoa(i), TRADDR: "10.0.0.1"}
		if i == 3 {
			e.SUBTYPE, e.TRADDR = capsule.SubtypeReferral, "nowhere"
		}
		e.Put(log[capsule.DiscoveryHeaderSize+i*capsule.DiscoveryEntrySize:])
	}
	return log
}

func TestHOST_22_SeveralPages(t *testing.T) {
	for _, n := range []int{0, 1, 63, 64, 200} {
		virtual(t, func(t *testing.T) {
			tg := newTarget(t)
			tg.log = discoveryLog(n, 5)
			entries, err := Discover(context.Background(), tg.addr, pipeOptions(t))
			require.NoError(t, err)
			require.Len(t, entries, n)
			for i, e := range entries {
				require.Equal(t, "nqn."+strconv.Itoa(i), e.SubNQN)
			}
			require.Len(t, tg.requests, 1, "a referral is not followed")
		})
	}
}

// TestHOST_22_OddPages: Options.MaxTransfer need not be a multiple of the units of log pages.
func TestHOST_22_OddPages(t *testing.T) {
	virtual(t, func(t *testing.T) {
		tg, o := newTarget(t), pipeOptions(t)
		tg.log, o.MaxTransfer = discoveryLog(9, 5), capsule.PageSize+1
		entries, err := Discover(context.Background(), tg.addr, o)
		require.NoError(t, err)
		require.Len(t, entries, 9)
		for _, sqe := range tg.commands(capsule.OpGetLogPage) {
			require.Zero(t, capsule.ParseGetLogPage(&sqe).Offset%4)
		}
	})
}

// TestHOST_22_Changes: a log that changes while it is read is read again.
func TestHOST_22_Changes(t *testing.T) {
	for n, at := range map[int]uint64{2: 0, 100: 64 << 10} {
		for _, changes := range []int{1, 9, 10} {
			virtual(t, func(t *testing.T) {
				tg := newTarget(t)
				tg.log = discoveryLog(n, 0)
				left := changes
				tg.script(func(c *call) bool {
					if m := capsule.ParseGetLogPage(&c.SQE); c.Opcode == capsule.OpGetLogPage && left > 0 && m.Offset == at && !m.RAE && m.Length() > 1024 {
						left--
						tg.mu.Lock()
						tg.log = discoveryLog(n+changes-left, uint64(changes-left))
						tg.mu.Unlock()
					}
					return false
				})
				entries, err := Discover(context.Background(), tg.addr, pipeOptions(t))
				if changes == 10 {
					require.ErrorContains(t, err, "changes")
					return
				}
				require.NoError(t, err)
				require.Len(t, entries, n+changes)
			})
		}
	}
}

func TestHOST_22_HostileLog(t *testing.T) {
	for name, change := range map[string]func(log []byte){
		"too many entries": func(log []byte) { log[8], log[9], log[10] = 1, 0x10, 0 },
		"2^64-1 entries": func(log []byte) {
			for i := range 8 {
				log[8+i] = 0xff
			}
		},
		"RECFMT 1": func(log []byte) { log[16] = 1 },
		"a name without NUL": func(log []byte) {
			for i := range 256 {
				log[1024+256+i] = 'n'
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(t *testing.T) {
				tg := newTarget(t)
				tg.log = discoveryLog(2, 1)
				change(tg.log)
				_, err := Discover(context.Background(), tg.addr, pipeOptions(t))
				require.ErrorIs(t, err, capsule.ErrMalformed)
			})
		})
	}
}
