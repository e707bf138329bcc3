// Package sctpkernel uses the SCTP of the Linux kernel (RFC 9260, RFC 6458), for DDP alone: a
// back end of package sctp.
//
// Sockets are opened, bound and connected by github.com/ishidawataru/sctp; from there on
// they are driven here, by system calls that wait in the poller of the Go runtime, so that
// no operating system thread waits with them. Each association is one socket with one
// goroutine that reads it and hands each message to the session whose stream it came on.
//
// The adaptation indication of DDP is part of every INIT and INIT ACK, and an association
// whose peer gives none, or another one, is aborted before anything is made of what came on
// it (RFC 5043 sections 5.1 and 11.1).
//
// A [Client] shares one association among all sessions with one peer, each on a pair of
// streams of its own. A [Listener] has one socket, and one for each association.
//
// On other systems, and where the kernel has no SCTP, all fails with [ErrNoSCTP].
package sctpkernel
