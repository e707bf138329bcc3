package qpconn

import "golang.org/x/sys/unix"

// yield lets another thread run on the processor, such as the thread that sends the response.
func yield() { _, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0) }
