//go:build unix

package main

import "syscall"

// noWait keeps the opening of a pipe from waiting for its other end, with a thread. For files it means nothing.
const noWait = syscall.O_NONBLOCK
