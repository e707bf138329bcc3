//go:build linux && !purego

package transport

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/goiwarp/iwarp/internal/sysfail"
	"github.com/goiwarp/iwarp/internal/testproc"
)

// refuseRegistrations makes the kernel refuse each further descriptor that the runtime's poller is to watch, as it does where the
// user has no epoll watch left. runtimeSet is the descriptor of that poller's epoll set.
func refuseRegistrations(t *testing.T, runtimeSet int) {
	t.Helper()
	low := 4 * uint32(binary.NativeEndian.Uint16([]byte{0, 1})&1) // where the low half of an argument is
	load := func(offset uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}
	}
	unless := func(k uint32, skip uint8) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: k, Jf: skip}
	}
	result := func(k uint32) unix.SockFilter { return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: k} }
	const number, args = 0, 16 // in struct seccomp_data
	filter := []unix.SockFilter{
		load(number), unless(unix.SYS_EPOLL_CTL, 5),
		load(args + low), unless(uint32(runtimeSet), 3),
		load(args + 8 + low), unless(unix.EPOLL_CTL_ADD, 1),
		result(unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSPC)),
		result(unix.SECCOMP_RET_ALLOW),
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	require.NoError(t, unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&program)))
	if errno != 0 {
		t.Skip("no system call can be made to fail here: ", errno)
	}
}

// epollSets are the descriptors of those that the process has.
func epollSets(t *testing.T) (fds []int) {
	t.Helper()
	links, err := filepath.Glob("/proc/self/fd/*")
	require.NoError(t, err)
	for _, link := range links {
		if to, err := os.Readlink(link); err == nil && to == "anon_inode:[eventpoll]" {
			fd, err := strconv.Atoi(filepath.Base(link))
			require.NoError(t, err)
			fds = append(fds, fd)
		}
	}
	return fds
}

// TestEpollSetThatTheRuntimeCannotWatch is none: a Poller that had one would report nothing, and no connection of it would ever
// go on; a reader that had one would look again and again.
func TestEpollSetThatTheRuntimeCannotWatch(t *testing.T) {
	if !testproc.Alone(t) {
		return
	}
	r, w, err := os.Pipe() // now the runtime has its set
	require.NoError(t, err)
	defer r.Close()
	defer w.Close()
	sets := epollSets(t)
	require.Len(t, sets, 1, "the runtime's")
	a, b := pollerPair(t, newPoller(t))
	before := descriptors(t)
	refuseRegistrations(t, sets[0])

	_, err = NewPoller()
	require.ErrorContains(t, err, "epoll_ctl")
	s := a.(*rawStream)
	s.in.mu.Lock()
	s.in.brief = busyTimes
	has := s.in.takeSet()
	s.in.mu.Unlock()
	require.False(t, has)
	require.Equal(t, before, descriptors(t), "nothing is kept")
	read := readAsync(a, make([]byte, 1))
	s.waits(t, inPoller, "it waits for the Poller to tell it instead")
	put(t, b, "x")
	require.NoError(t, (<-read).err)
}

// TestReaderHasNoSetWhereSetsDoNotNest: gVisor does not report to the runtime's epoll set each event in the reader's. There, and where that
// cannot be found out, the reader waits for the Poller, whose set is fetched.
func TestReaderHasNoSetWhereSetsDoNotNest(t *testing.T) {
	for name, call := range map[string]uint32{"no event arrives": unix.SYS_WRITE, "there is no eventfd": unix.SYS_EVENTFD2} {
		t.Run(name, func(t *testing.T) {
			var p *Poller
			require.NoError(t, sysfail.Run(t, unix.EINVAL, func() (err error) {
				p, err = NewPoller()
				return err
			}, call))
			t.Cleanup(func() { require.NoError(t, p.Close()) })
			a, b := pollerPair(t, p)
			s := a.(*rawStream)
			for range 2 {
				s.in.brief = busyTimes
				read := readAsync(a, make([]byte, 1))
				s.waits(t, inPoller, "it waits for the Poller to tell it")
				put(t, b, "x")
				require.NoError(t, (<-read).err)
			}
			require.Nil(t, s.in.busy)
			require.Zero(t, p.busy.Load())
		})
	}
}
