//go:build !linux || purego

package transport

// A Poller tells which of many idle connections became readable. This build has
// none: Arm of its streams reports false.
type Poller struct{}

// NewPoller returns a Poller.
func NewPoller() (*Poller, error) { return new(Poller), nil }

// Close releases the Poller.
func (p *Poller) Close() error { return nil }
