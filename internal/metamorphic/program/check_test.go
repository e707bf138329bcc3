package program

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
)

// three are work requests, the second of them unsignaled.
func three() []*Work {
	return []*Work{
		{ID: 0, Op: iwarp.OpRDMAWrite},
		{ID: 1, Op: iwarp.OpSend, Flags: iwarp.Unsignaled},
		{ID: 2, Op: iwarp.OpFetchAdd, Old: 7},
	}
}

func completion(id uint64, op iwarp.Op, st iwarp.Status) iwarp.WC {
	wc := iwarp.WC{ID: id, Op: op, Status: st}
	if op == iwarp.OpFetchAdd && st == iwarp.StatusSuccess {
		wc.Old, wc.Len = 7, cellLen
	}
	return wc
}

// TestCompletionsThatAreWrong: each list has one fault, which is noticed.
func TestCompletionsThatAreWrong(t *testing.T) {
	const ok, flushed, access = iwarp.StatusSuccess, iwarp.StatusFlushed, iwarp.StatusRemoteAccess
	write, send, add := iwarp.OpRDMAWrite, iwarp.OpSend, iwarp.OpFetchAdd
	oldValue := completion(2, add, ok)
	oldValue.Old = 8
	for _, c := range []struct {
		name   string
		wcs    []iwarp.WC
		sent   string // checkSent's answer, for a queue on which nothing fails
		doubts string // checkDoubted's answer, for a queue that has ended
	}{
		{"all is well", []iwarp.WC{completion(0, write, ok), completion(2, add, ok)}, "", ""},
		{"lost", []iwarp.WC{completion(0, write, ok)}, "no completion of #2", "no completion of #2"},
		{"the first is lost", []iwarp.WC{completion(2, add, ok)}, "no completion of #0 (RDMA Write)", "no completion of #0"},
		{"doubled", []iwarp.WC{completion(0, write, ok), completion(0, write, ok), completion(2, add, ok)}, "not due: #0 RDMA Write", "no completion of #2"},
		{"one more", []iwarp.WC{completion(0, write, ok), completion(2, add, ok), completion(2, add, ok)}, "not due", "not due"},
		{"of another operation", []iwarp.WC{completion(0, send, ok), completion(2, add, ok)}, "where #0", "where #0"},
		{"unsignaled, and completes", []iwarp.WC{completion(0, write, ok), completion(1, send, ok), completion(2, add, ok)}, "not due: #1 Send", "it is unsignaled"},
		{"another value", []iwarp.WC{completion(0, write, ok), oldValue}, "value before was 0x8, want 0x7", "value before was 0x8, want 0x7"},
		{"all flushed", []iwarp.WC{completion(0, write, flushed), completion(1, send, flushed), completion(2, add, flushed)}, "flushed", ""},
		{"the unsignaled one is not flushed", []iwarp.WC{completion(0, write, flushed), completion(2, add, flushed)}, "flushed", "no completion of #1"},
		{"success after a failure", []iwarp.WC{completion(0, write, flushed), completion(1, send, flushed), completion(2, add, ok)}, "flushed", "after a failure"},
		{"one cause", []iwarp.WC{completion(0, write, ok), completion(1, send, access), completion(2, add, flushed)}, "not due: #1 Send", ""},
		{"two causes", []iwarp.WC{completion(0, write, ok), completion(1, send, access), completion(2, add, access)}, "not due: #1 Send", "2 work requests have failed"},
	} {
		for i := range c.wcs {
			c.wcs[i].QP = new(iwarp.QP) // Err asks it for the cause
		}
		says(t, c.sent, checkSent(three(), c.wcs), c.name)
		says(t, c.doubts, checkDoubted(three(), c.wcs, true), c.name)
	}
	refused := three()
	refused[2].Bad = "stag"
	says(t, "must be refused", checkDoubted(refused, []iwarp.WC{completion(0, write, ok), completion(2, add, ok)}, true), "a bad access")
	says(t, "nothing was wrong", checkDoubted(refused, []iwarp.WC{completion(0, write, ok), completion(2, add, flushed)}, false), "no fault")
}

func says(t *testing.T, want string, err error, name string) {
	t.Helper()
	if want == "" {
		require.NoError(t, err, name)
		return
	}
	require.ErrorContains(t, err, want, name)
}

// TestOctetsInDoubt: confirmed octets must be there, any unconfirmed octet may be, and no others.
func TestOctetsInDoubt(t *testing.T) {
	mem := &Mem{Name: "memory"}
	writes := func(off int, data string) *Work {
		return &Work{Effects: []Effect{{Mem: mem, Off: off, Data: []byte(data)}, {Mem: new(Mem), Data: []byte("of other memory")}}}
	}
	sure, open := []*Work{writes(0, "ab")}, []*Work{writes(1, "xyz"), writes(3, "Z")}
	for got, want := range map[string]string{
		"ab....": "", "axyz..": "", "axyZ..": "", "a.y...": "", "abyZ..": "",
		"..yz..": "2 octets of [0, 1] differ", "ab...q": "1 octets of [5, 5] differ; the first is 0x71, want 0x2e", "abx...": "differ",
	} {
		if got == "a.y..." {
			want = "1 octets of [1, 1]" // the confirmed octet was there before
		}
		says(t, want, checkOctets(mem, []byte(got), []byte("......"), sure, open), got)
	}
}

func TestEventsOfAnEnd(t *testing.T) {
	ended, waits := iwarp.Event{Kind: iwarp.EventClosed}, iwarp.Event{Kind: iwarp.EventNoReceive}
	kind, err := theEvent([]iwarp.Event{waits, ended})
	require.NoError(t, err)
	require.Equal(t, iwarp.EventClosed, kind, "waits depend on time")
	_, err = theEvent([]iwarp.Event{ended, ended})
	require.ErrorContains(t, err, "want one")
	_, err = theEvent(nil)
	require.ErrorContains(t, err, "want one")
}
