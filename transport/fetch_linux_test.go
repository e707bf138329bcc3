//go:build linux && !purego

package transport

import (
	"context"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// The calls of userfaultfd(2), where the process itself fetches pages.
const (
	uffdAPI       = 0xc018aa3f
	uffdRegister  = 0xc020aa00
	uffdZeroPage  = 0xc020aa04
	uffdVersion   = 0xaa
	uffdMissing   = 1
	uffdMessage   = 32
	uffdMessageAt = 16 // of the address
)

// slowMemory returns memory each page of which comes only when fetch, which is told of the
// fault, has returned.
func slowMemory(t *testing.T, n int, fetch func()) []byte {
	t.Helper()
	uffd, _, e := unix.Syscall(unix.SYS_USERFAULTFD, unix.O_CLOEXEC, 0, 0)
	if e != 0 {
		require.NotEqual(t, "1", os.Getenv("IWARP_REQUIRE_TOOLS"), "userfaultfd: %v", e)
		t.Skipf("userfaultfd: %v", e)
	}
	mem, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	require.NoError(t, err)
	ioctl := func(request uintptr, arg *[4]uint64) {
		_, _, e := unix.Syscall(unix.SYS_IOCTL, uffd, request, uintptr(unsafe.Pointer(arg)))
		require.Zero(t, e)
	}
	ioctl(uffdAPI, &[4]uint64{uffdVersion})
	ioctl(uffdRegister, &[4]uint64{uint64(uintptr(unsafe.Pointer(&mem[0]))), uint64(n), uffdMissing})
	go func() {
		for range n / int(pageSize) {
			var message [uffdMessage]byte
			if _, err := unix.Read(int(uffd), message[:]); err != nil {
				return
			}
			fetch()
			at := *(*uint64)(unsafe.Pointer(&message[uffdMessageAt])) &^ (uint64(pageSize) - 1)
			_, _, _ = unix.Syscall(unix.SYS_IOCTL, uffd, uffdZeroPage, uintptr(unsafe.Pointer(&[4]uint64{at, uint64(pageSize)})))
		}
	}()
	return mem
}

// TestSlowPageStopsNoOtherGoroutine: while a page of a source comes from a disk, other
// goroutines run, and memory is collected. The test runs in a process of its own, which hangs
// if that is not so: a goroutine of it fetches the page.
func TestSlowPageStopsNoOtherGoroutine(t *testing.T) {
	const mark = "IWARP_TEST_ALONE"
	for name, c := range map[string]struct {
		size  int
		fetch bool
	}{
		"long":          {2 * tellFrom, false},
		"fetched":       {tellFrom / 4, true},
		"fetched, long": {2 * tellFrom, true},
	} {
		t.Run(name, func(t *testing.T) {
			if os.Getenv(mark) == "" {
				ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second) // its own timers hang, too
				defer cancel()
				run := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestSlowPageStopsNoOtherGoroutine$/^"+name+"$", "-test.timeout=20s", "-test.v")
				run.Env = append(os.Environ(), mark+"=1", "GOMAXPROCS=1")
				out, err := run.CombinedOutput()
				require.NoError(t, err, "%s", out)
				if strings.Contains(string(out), "--- SKIP") {
					t.Skipf("%s", out)
				}
				require.Contains(t, string(out), "--- PASS: TestSlowPageStopsNoOtherGoroutine/", "it has run")
				return
			}
			require.Equal(t, 1, runtime.GOMAXPROCS(0))
			a, b := pollerPair(t, newPoller(t))
			var fetched atomic.Int64
			mem := slowMemory(t, c.size, func() {
				fetched.Add(1)
				runtime.GC() // it stops all goroutines for a moment
				time.Sleep(time.Millisecond)
			})
			if c.fetch {
				Prefault(a, [][]byte{mem[100 : c.size-100]})
				require.EqualValues(t, c.size/int(pageSize), fetched.Load(), "all is there")
			}
			got := make(chan int, 1)
			go func() {
				n, buf := 0, make([]byte, 1<<20)
				for n < c.size {
					m, err := b.Read(buf, Park)
					if err != nil {
						break
					}
					n += m
				}
				got <- n
			}()
			_, err := a.Write([][]byte{mem}, true)
			require.NoError(t, err)
			require.Equal(t, c.size, <-got)
			require.EqualValues(t, c.size/int(pageSize), fetched.Load(), "each page has come once")
			require.False(t, a.(*rawStream).write.told, "what comes next is not slow")
		})
	}
}
