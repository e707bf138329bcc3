//go:build !linux

package main

import (
	"hash/fnv"
	"io/fs"
)

// deviceOf is not needed: no two files have one path.
func deviceOf(fs.FileInfo) uint64 { return 0 }

// identify returns the identity of a file: here it is that of its path, so that a handle does not survive a
// rename together with a restart of the server.
func (f *filesystem) identify(path string) (identity, error) {
	if _, err := f.Lstat(path); err != nil {
		return identity{}, err
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(local(path)))
	return identity{number: h.Sum64()}, nil
}

// lastName says no: another file may get the path, and then it has the handle.
func lastName(fs.FileInfo) bool { return false }
