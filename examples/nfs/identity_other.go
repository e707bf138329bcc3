//go:build !linux

package main

import (
	"hash/fnv"
	"io/fs"
)

// deviceOf is not needed: no two files have the same path.
func deviceOf(fs.FileInfo) uint64 { return 0 }

// identify returns the identity of a file: here it is derived from its path, so that a handle does not survive
// both a rename and a restart of the server.
func (f *filesystem) identify(path string) (identity, error) {
	if _, err := f.Lstat(path); err != nil {
		return identity{}, err
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(local(path)))
	return identity{number: h.Sum64()}, nil
}

// lastName reports false: another file may get the path, and then it has the handle.
func lastName(fs.FileInfo) bool { return false }
