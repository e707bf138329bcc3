package stag

import (
	"fmt"
	"strings"
)

// Access is a set of rights. Reading locally is always allowed.
type Access uint32

const (
	LocalWrite   Access = 1 << iota // receives and Read Responses may be placed
	RemoteWrite                     // the peer may write; needs LocalWrite
	RemoteRead                      // the peer may read
	RemoteAtomic                    // the peer may use atomic operations; needs LocalWrite
	MWBind                          // memory windows may be bound
)

// Remote contains every right of a peer.
const Remote = RemoteWrite | RemoteRead | RemoteAtomic

const allAccess = LocalWrite | Remote | MWBind

var accessNames = [...]string{"LocalWrite", "RemoteWrite", "RemoteRead", "RemoteAtomic", "MWBind"}

// String lists the rights, as in "LocalWrite|RemoteRead".
func (a Access) String() string {
	if a == 0 {
		return "LocalRead"
	}
	var names []string
	for i, name := range accessNames {
		if a&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	if a&^allAccess != 0 {
		names = append(names, "unknown")
	}
	return strings.Join(names, "|")
}

// allows reports whether every right of want is granted.
func (a Access) allows(want Access) bool { return a&want == want }

// unsound returns why a is not sound.
func (a Access) unsound() error {
	if unknown := a &^ allAccess; unknown != 0 {
		return fmt.Errorf("%w: unknown right %#x", errRights, uint32(unknown))
	}
	return fmt.Errorf("%w: %v needs LocalWrite", errRights, a&(RemoteWrite|RemoteAtomic))
}

// sound reports whether a region may have these rights: all are known, and the peer may
// write only if LocalWrite is set.
func (a Access) sound() bool {
	if a&^allAccess != 0 {
		return false
	}
	return a&(RemoteWrite|RemoteAtomic) == 0 || a&LocalWrite != 0
}
