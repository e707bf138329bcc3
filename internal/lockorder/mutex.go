//go:build !lockorder

package lockorder

import "sync"

// A Mutex is a sync.Mutex of rank R. The zero value is unlocked.
type Mutex[R Rank] struct{ sync.Mutex }
