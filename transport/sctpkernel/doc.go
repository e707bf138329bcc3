// Package sctpkernel uses the SCTP of the Linux kernel (RFC 9260, RFC 6458), for DDP only. It is
// a back end of package sctp.
//
// github.com/ishidawataru/sctp opens, binds and connects the sockets. From then on this package
// drives them by system calls that wait in the poller of the Go runtime, so that
// no operating system thread waits with them. Each association is one socket with one
// goroutine, which reads it and hands each message to the session of its stream.
//
// The adaptation indication of DDP is part of every INIT and INIT ACK. An association
// whose peer gives none, or another one, is aborted before any of its messages is processed
// (RFC 5043 sections 5.1 and 11.1).
//
// A [Client] shares one association among all sessions with one peer, each on a pair of
// streams of its own. A [Listener] has one socket, and one for each association.
//
// On other systems, and if the kernel does not support SCTP, everything fails with [ErrNoSCTP].
package sctpkernel
