//go:build !linux

package commit

import "testing"

func platformBackings(*testing.T, map[string]func(string, int64) (backing, error)) {}
