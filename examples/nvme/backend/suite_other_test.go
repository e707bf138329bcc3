//go:build !linux

package backend

func platformSubjects() []subject { return nil }
