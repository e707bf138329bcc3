// Package soliciting makes the RDMA Reads of many queue pairs share one window over solicited
// octets: each Read waits for its part of the window before its Read Request is sent.
//
// A [Solicitor] is a window of package solicit with a lock and a timer. A [User] is what one queue
// pair has of it: rdmap asks it before a Read starts (rdmap.Config.Admit), and the completion of the Read gives
// its grant back. What is decided under the lock is in turns.go, which knows neither lock nor
// clock, so that a test can explore it.
//
// # Locks
//
// Admit and Complete are called with the lock of a stream held, and take the lock of the Solicitor.
// A grant that one stream gives back usually goes to another stream, which has to be told. That
// needs the lock of the other stream, so it is not done at once: two streams that told each other
// would wait for each other's lock. The receiving goroutine of the queue pair whose Read was
// answered tells one stream later, in User.Kick, with no lock held. Each other stream is told by
// a goroutine that is started for it.
package soliciting
