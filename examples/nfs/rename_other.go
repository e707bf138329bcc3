//go:build !linux

package main

func (f *filesystem) rename(from, to string) error { return f.root.Rename(from, to) }
