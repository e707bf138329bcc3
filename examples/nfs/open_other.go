//go:build !unix

package main

// noWait is not needed on systems without named pipes in the file system.
const noWait = 0
