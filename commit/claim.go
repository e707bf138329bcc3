package commit

import (
	"errors"
	"os"
	"slices"
	"sync"
)

// ErrInUse says that a file or device is already the file of another backing, of this process
// or of another, or that the system uses it otherwise. Each backing knows only what was
// written through it, so a Commit by one backing would succeed, without a sync, for octets
// that were written through the other.
var ErrInUse = errors.New("in use by another backing")

// A claim is the right to be the only backing of a file in this process, whatever name the
// file was opened by.
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
