//go:build !unix

package main

// noWait is not needed where files have no pipes beside them.
const noWait = 0
