// Package sysfail makes system calls fail, in tests.
package sysfail

import (
	"runtime"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// patience is how long Run waits for a function that repeats a failing call.
const patience = 5 * time.Second

// Run runs f on a separate thread, on which the kernel fails calls (such as unix.SYS_FSYNC) with an errno, and returns its
// result. Goroutines that f starts run on other threads. If system call filters are not allowed, the test is skipped.
func Run(t *testing.T, no unix.Errno, f func() error, calls ...uint32) error {
	t.Helper()
	filtered, done := make(chan error, 1), make(chan error, 1)
	go func() {
		runtime.LockOSThread() // the thread ends with this goroutine
		err := filter(no, calls)
		if filtered <- err; err == nil {
			done <- f()
		}
	}()
	if err := <-filtered; err != nil {
		t.Skipf("no filter of system calls: %v", err)
	}
	select {
	case err := <-done:
		return err
	case <-time.After(patience):
		t.Fatalf("a call that fails with %v is made again and again", no)
		return nil
	}
}

// filter makes the kernel fail calls of this thread with the errno no.
func filter(no unix.Errno, calls []uint32) error {
	program := []unix.SockFilter{{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS}} // the number of the call
	for _, call := range calls {
		program = append(program,
			unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: call, Jf: 1},
			unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(no)})
	}
	program = append(program, unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW})
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	p := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	_, _, failed := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&p)))
	if failed != 0 {
		return failed
	}
	return nil
}
