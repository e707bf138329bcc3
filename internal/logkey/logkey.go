// Package logkey defines the keys of all attributes that the library logs. They are stable: docs/metrics.md lists them. Values other
// than numbers, times and errors are logged as texts: a Handler that writes JSON would write the fields of the Go type of an address
// or a kind.
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

// A Line is a log message of the library, with its keys.
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
	{verbs, "INFO", "queue pair ended", []string{Peer, How, Err}, "it ended with an error; `how` is the kind of its Event"},
	{verbs, "WARN", "a message waits for a receive", []string{Peer, For, Limit}, "see `EventNoReceive`; `limit` is `QPConfig.RNRWait`"},
	{verbs, "WARN", "posted work waits for the initiator's first message, before which a responder may not send", []string{Peer, For, Option}, "RFC 5044 section 7.1.2; `option` names the setting that lets it send"},
	{verbs, "ERROR", "a Buffer or Flusher panicked", []string{Method, Value, Stack}, "in a method of the program; the connection, or the Commit, ends"},
	{verbs, "INFO", "connection refused during set-up", []string{Err}, "`err` contains the address of the initiator; DEBUG if the Authenticator refused it"},
	{verbs, "ERROR", "no connection can be taken", []string{Addr, Err}, "the listener at `addr` takes none, for lack of descriptors, for example. Over SCTP, peers that have an association may still open connections"},
	{verbs, "INFO", "connections can be taken again", []string{Addr}, "logged with the next connection after that"},
	{verbs, "INFO", "connections are driven through package net, not by system calls on a *net.TCPConn", []string{Path}, "logged once for each path; these connections could be faster"},
	{auth, "WARN", "connection refused", []string{Event, At, Source, Listener, Reason, Stage, Key, Client, Mode, Suite, Age, Suppressed}, "an `AccessEvent`"},
	{services, "WARN", "operation refused", audited, "an `AuditEvent`; also if a connection was ended, or a copy ended too late: see `reason`"},
	{services, "INFO", "operation granted", audited, "an `AuditEvent`"},
}
