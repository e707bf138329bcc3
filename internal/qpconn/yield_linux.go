package qpconn

import "golang.org/x/sys/unix"

// yield lets another thread of the processor run, such as the one that the answer
// comes from.
func yield() { _, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0) }
