//go:build !linux

package main

import (
	"io/fs"
	"os"
)

// lately is for Linux alone.
type lately struct{}

func (lately) add(fs.FileInfo) {}

// openOwn is for Linux alone.
func (*filesystem) openOwn(_ string, _ int, refused error) (*os.File, error) { return nil, refused }
