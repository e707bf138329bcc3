package commit

import (
	"errors"
	"os"
	"slices"
	"sync"
)

// ErrInUse tells that a file or device is the file of another backing already, of this process
// or of another, or that the system uses it otherwise. Each backing knows only what was
// written through it, and so a Commit by one would be a success for octets that were
// written through the other, without a sync.
var ErrInUse = errors.New("in use by another backing")

// A claim is the right to be the one backing of a file in this process, by whatever name it
// was opened.
type claim struct{ file os.FileInfo }

var claims struct {
	mu  sync.Mutex
	all []*claim
}

// claimFile fails with ErrInUse if there is a claim on the same file.
func claimFile(file os.FileInfo) (*claim, error) {
	claims.mu.Lock()
	defer claims.mu.Unlock()
	for _, c := range claims.all {
		if sameFile(c.file, file) {
			return nil, ErrInUse
		}
	}
	c := &claim{file}
	claims.all = append(claims.all, c)
	return c, nil
}

func sameFile(a, b os.FileInfo) bool { return os.SameFile(a, b) || sameDevice(a, b) }

func (c *claim) release() {
	claims.mu.Lock()
	defer claims.mu.Unlock()
	claims.all = slices.DeleteFunc(claims.all, func(x *claim) bool { return x == c })
}
