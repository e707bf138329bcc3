//go:build !linux || purego

package transport

// A Poller reports which of many idle connections have become readable. This build does not
// support that: Arm of its streams reports false.
type Poller struct{}

// NewPoller returns a Poller.
func NewPoller() (*Poller, error) { return new(Poller), nil }

// Close does nothing.
func (p *Poller) Close() error { return nil }
