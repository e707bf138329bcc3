// Package soliciting makes the RDMA Reads of many queue pairs share one window over solicited
// octets: each Read waits for its part of the window before its Read Request is sent.
//
// A [Solicitor] is a window of package solicit with a lock and a timer. A [User] is the share of one
// queue pair in it: rdmap asks it before a Read starts (rdmap.Config.Admit), and the completion of the
// Read returns the grant. The decisions under the lock are in turns.go, which uses neither lock nor
// clock, so that a test can explore it.
//
// # Locks
//
// Admit and Complete are called with the lock of a stream held, and lock the Solicitor. A grant that
// one stream returns usually goes to another stream, which must be told. That needs the lock of the
// other stream, so it does not happen at once: two streams that told each other would deadlock. The
// receiving goroutine of the queue pair whose Read was answered tells one stream later, in User.Kick,
// with no lock held. A new goroutine tells each other stream.
package soliciting
