package main

import "github.com/goiwarp/iwarp"

func (o op) named(as string) op       { o.as = as; return o }
func (o op) fenced() op               { o.flags |= iwarp.ReadFence; return o }
func (o op) solicited() op            { o.flags |= iwarp.Solicited; return o }
func (o op) to(v variable) op         { o.into = v; return o }
func (o op) finds(sights ...sight) op { o.sees = sights; return o }

func (o op) isMessage() bool {
	return o.sends() || o.verb == iwarp.OpRDMAWriteImm || o.verb == iwarp.OpImmediate
}
func (o op) sends() bool    { return o.verb == iwarp.OpSend || o.verb == iwarp.OpSendInvalidate }
func (o op) isAtomic() bool { return o.verb == iwarp.OpFetchAdd || o.verb == iwarp.OpCompareSwap }
func (o op) reads() bool    { return o.verb == iwarp.OpRDMARead || o.verb == iwarp.OpRDMAReadInvalidate }
func (o op) writes() bool   { return o.verb == iwarp.OpRDMAWrite || o.verb == iwarp.OpRDMAWriteImm }

func write(at end, v variable, n uint64) op {
	return op{at: at, verb: iwarp.OpRDMAWrite, on: v, value: n}
}

func writeImmediate(at end, v variable, n uint64) op {
	return op{at: at, verb: iwarp.OpRDMAWriteImm, on: v, value: n}
}

func send(at end, n uint64) op      { return op{at: at, verb: iwarp.OpSend, value: n} }
func immediate(at end, n uint64) op { return op{at: at, verb: iwarp.OpImmediate, value: n} }

func sendInvalidate(at end, v variable) op {
	return op{at: at, verb: iwarp.OpSendInvalidate, on: v, value: 1}
}

func read(at end, v variable) op { return op{at: at, verb: iwarp.OpRDMARead, on: v} }

// readNothing is a Read of no octets, whose completion shows that all earlier work was placed.
func readNothing(at end) op { return op{at: at, verb: iwarp.OpRDMARead} }

func readInvalidate(at end, v variable) op {
	return op{at: at, verb: iwarp.OpRDMAReadInvalidate, on: v, into: s}
}

func localInvalidate(at end) op {
	return op{at: at, verb: iwarp.OpLocalInvalidate, into: s, flags: iwarp.LocalFence}
}

func fetchAdd(at end, v variable, n uint64) op {
	return op{at: at, verb: iwarp.OpFetchAdd, on: v, value: n}
}

// compareSwap stores n if v has its first value.
func compareSwap(at end, v variable, n uint64) op {
	return op{at: at, verb: iwarp.OpCompareSwap, on: v, value: n}
}

func commitOf(at end, v variable) op { return op{at: at, verb: iwarp.OpCommit, on: v} }

// thenStores adds a follow-on to a Commit: n is stored in c.
func (o op) thenStores(n uint64) op { o.store, o.value = true, n; return o }

// wait waits until all work that the thread has posted is complete.
var wait = op{}
