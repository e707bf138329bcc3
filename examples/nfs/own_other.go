//go:build !linux

package main

import (
	"io/fs"
	"os"
)

// lately is for Linux only.
type lately struct{}

func (lately) add(fs.FileInfo) {}

// openOwn is for Linux only.
func (*filesystem) openOwn(_ string, _ int, refused error) (*os.File, error) { return nil, refused }
