// Package octets encodes what a peer sends: the frames of the set-up, FPDUs, and DDP and RDMAP segments.
//
// It has its own framing and headers, so that a mistake of packages mpa and ddp does not cancel itself out. The
// scripted peer of tests (package wiretest) and the random attackers (package attack) both use it.
package octets
