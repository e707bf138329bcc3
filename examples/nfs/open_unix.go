//go:build unix

package main

import "syscall"

// noWait keeps the opening of a pipe from blocking a thread until its other end is opened. It has no effect on files.
const noWait = syscall.O_NONBLOCK
