//go:build !linux

package matrix

import "errors"

// startCapture needs packet sockets. The matrix is listed on every system and run in the
// guest, which is Linux.
func startCapture(string) (*capture, error) { return nil, errors.ErrUnsupported }
