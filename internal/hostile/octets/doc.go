// Package octets makes what a peer sends, as octets: the frames of the set-up, FPDUs, and segments of DDP and RDMAP.
//
// It has its own framing and headers, so that a mistake of packages mpa and ddp does not cancel itself out. The
// scripted peer of tests (package wiretest) and the random attackers (package attack) both speak with it.
package octets
