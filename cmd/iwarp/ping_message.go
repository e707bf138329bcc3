package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"strconv"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/stag"
)

// infoLen is the length of rping's only message, struct rping_rdma_info: a buffer that
// the server is to read from or to write to. The server's own messages have the same
// length, and mean "go ahead", whatever they contain.
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                                                               |
//	+                     Address (tagged offset)                   +
//	|                                                               |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                          rkey (STag)                          |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                             Size                              |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
const infoLen = 16

func putInfo(b []byte, rb iwarp.RemoteBuffer) {
	binary.BigEndian.PutUint64(b, rb.TO)
	binary.BigEndian.PutUint32(b[8:], uint32(rb.STag))
	binary.BigEndian.PutUint32(b[12:], rb.Len)
}

func parseInfo(b []byte) iwarp.RemoteBuffer {
	return iwarp.RemoteBuffer{
		TO:   binary.BigEndian.Uint64(b),
		STag: stag.STag(binary.BigEndian.Uint32(b[8:])),
		Len:  binary.BigEndian.Uint32(b[12:]),
	}
}

// minSize leaves room for the longest greeting, that of ping math.MaxInt32.
var minSize = len(greeting(math.MaxInt32)) + 1

func greeting(n int) string { return "rdma-ping-" + strconv.Itoa(n) + ": " }

// fillPing writes ping number n as rping does: a greeting, then the characters from
// 'A' to 'z' repeatedly, starting one character later with every ping, and a NUL.
func fillPing(b []byte, n int) {
	const first, last = 'A', 'z'
	c := byte(first + n%(last-first+1))
	for i := copy(b, greeting(n)); i < len(b); i++ {
		b[i] = c
		if c++; c > last {
			c = first
		}
	}
	b[len(b)-1] = 0
}

// text returns the data of a ping as rping prints it: up to the NUL. The data come from the peer and must not control the terminal:
// everything except printable ASCII, the only characters that fillPing writes, becomes a question mark.
func text(b []byte) string {
	if end := bytes.IndexByte(b, 0); end >= 0 {
		b = b[:end]
	}
	printed := bytes.Clone(b)
	for i, c := range printed {
		if c < ' ' || c > '~' {
			printed[i] = '?'
		}
	}
	return string(printed)
}

// difference describes the first octet in which two buffers of one length differ.
func difference(got, want []byte) error {
	for i := range want {
		if got[i] != want[i] {
			return fmt.Errorf("octet %d is %#02x, want %#02x", i, got[i], want[i])
		}
	}
	return nil
}
