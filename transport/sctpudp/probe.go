package sctpudp

import "bytes"

// A probe is the last packet with DATA that was sent although the peer had no room for it. A peer that still has no room
// drops it, and reports later when it has. pion counts the packet as outstanding. Because its retransmission timer has
// expired before, only one packet may be outstanding: pion would send nothing until the timer expires again, which may
// take a quarter of PeerTimeout. Therefore the probe is sent again as soon as the peer has room.
type probe struct {
	packet []byte // with the common header, sealed; nil: there is none
	tsn    uint32 // of its last chunk
}

// keep records a probe that is about to be sent.
func (a *association) keep(p []byte, tsn uint32) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.probe = probe{bytes.Clone(p), tsn}
}

// reopened returns the packet to send again when the peer has reported a window, or nil if there is none. The caller holds mu.
func (a *association) reopened() []byte {
	if a.window < uint32(a.packetSize) {
		return nil
	}
	p := a.probe
	a.probe = probe{}
	if p.packet == nil || !a.flight.has(p.tsn) {
		return nil
	}
	return p.packet
}
