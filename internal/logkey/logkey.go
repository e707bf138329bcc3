// Package logkey has the keys of all attributes that the library logs. They are stable: docs/metrics.md lists them. Values that are
// no numbers, times or errors are logged as texts: a Handler that writes JSON would make of an address, or of a kind, what its Go type
// has inside.
package logkey

// The keys.
const (
	Addr       = "addr"
	Age        = "age"
	At         = "at"
	Client     = "client"
	Epoch      = "epoch"
	Err        = "err"
	Event      = "event"
	For        = "for"
	How        = "how"
	Key        = "key"
	Known      = "known"
	Limit      = "limit"
	Listener   = "listener"
	Method     = "method"
	Mode       = "mode"
	Op         = "op"
	Ops        = "ops"
	Option     = "option"
	Path       = "path"
	Peer       = "peer"
	Reason     = "reason"
	Region     = "region"
	Remote     = "remote"
	Source     = "source"
	Stack      = "stack"
	Stage      = "stage"
	Suite      = "suite"
	Suppressed = "suppressed"
	Value      = "value"
)

// A Line is a message of the library, with its keys.
type Line struct {
	Logger  string // which one
	Level   string
	Message string
	Keys    []string
	Meaning string
}

// The loggers.
const (
	verbs    = "Config.Logger"
	auth     = "cm.Config.Logger"
	services = "rma.ServerConfig.Logger"
)

var audited = []string{Event, At, Peer, Known, Remote, Op, Region, Epoch, Ops, Reason, Suppressed}

// Lines are all messages, in the order of the document.
var Lines = []Line{
	{verbs, "INFO", "queue pair ended", []string{Peer, How, Err}, "with an error; `how` is the kind of its Event"},
	{verbs, "WARN", "a message waits for a receive", []string{Peer, For, Limit}, "see `EventNoReceive`; `limit` is `QPConfig.RNRWait`"},
	{verbs, "WARN", "posted work waits for the initiator's first message, before which a responder may not send", []string{Peer, For, Option}, "RFC 5044 section 7.1.2; `option` would let it send"},
	{verbs, "ERROR", "a Buffer or Flusher panicked", []string{Method, Value, Stack}, "of the program; the connection, or the Commit, ends"},
	{verbs, "INFO", "connection refused during set-up", []string{Err}, "with the address of the initiator; DEBUG where the Authenticator has refused it"},
	{verbs, "ERROR", "no connection can be taken", []string{Addr, Err}, "by the listener at `addr`: no descriptors, for example. Over SCTP, peers that have an association may still open connections"},
	{verbs, "INFO", "connections can be taken again", []string{Addr}, "the end of that, with the next connection"},
	{verbs, "INFO", "connections are driven through package net, not by system calls on a *net.TCPConn", []string{Path}, "once for each path: they could be faster"},
	{auth, "WARN", "connection refused", []string{Event, At, Source, Listener, Reason, Stage, Key, Client, Mode, Suite, Age, Suppressed}, "an `AccessEvent`"},
	{services, "WARN", "operation refused", audited, "an `AuditEvent`; also where a connection was ended, or a copy has ended too late: `reason` tells"},
	{services, "INFO", "operation granted", audited, "an `AuditEvent`"},
}
