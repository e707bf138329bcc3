//go:build !linux

package machine

func limits() []Fact { return nil }
