//go:build lockorder

package lockorder

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// panics runs f and returns what it panics with.
func panics(f func()) (message string) {
	defer func() { message = fmt.Sprint(recover()) }()
	f()
	return ""
}

func TestLockOutOfOrder(t *testing.T) {
	var qp Mutex[QP]
	var cq Mutex[CQ]
	qp.Lock()
	cq.Lock()
	qp.Unlock() // locks may be released in any order
	message := panics(qp.Lock)
	require.Regexp(t, `^lockorder: QP locked at .*held_test.go:\d+ under CQ, which was locked at .*held_test.go:23$`, message)
	cq.Unlock()
	qp.Lock() // nothing is left behind
	qp.Unlock()
}

func TestMutexesOfOneRankDoNotNest(t *testing.T) {
	var a, b Mutex[CQ]
	a.Lock()
	defer a.Unlock()
	require.Contains(t, panics(b.Lock), "CQ locked at")
	require.Contains(t, panics(a.Lock), "CQ locked at", "instead of a deadlock")
}

func TestGoroutinesAreKeptApart(t *testing.T) {
	var qp Mutex[QP]
	var cq Mutex[CQ]
	cq.Lock()
	defer cq.Unlock()
	done := make(chan string)
	go func() {
		done <- panics(func() {
			qp.Lock()
			qp.Unlock()
		})
	}()
	require.Equal(t, "<nil>", <-done)
}

func TestTryLockIsHeldButNotOrdered(t *testing.T) {
	var qp Mutex[QP]
	var cq Mutex[CQ]
	cq.Lock()
	require.True(t, qp.TryLock())
	cq.Unlock()
	var registry Mutex[Registry]
	require.Contains(t, panics(registry.Lock), "Registry locked at")
	qp.Unlock()
}
