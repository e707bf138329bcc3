package streamperf

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/peer"
	"github.com/goiwarp/iwarp/rpcrdma"
)

// handleLen is the length of the file handle of READ.
const handleLen = 32

// acceptCalls answers calls of READ with octets of one file in memory, whatever their file handles are.
func (v *service) acceptCalls(ctx context.Context, n side, cr *iwarp.ConnRequest) error {
	file := peer.SourceOf(fileSize)
	c, err := rpcrdma.Accept(ctx, cr, &rpcrdma.Config{RNIC: n.rnic, QP: iwarp.QPConfig{MPA: mpaOf(v.CRC)}})
	if err != nil {
		return err
	}
	var head []byte
	for {
		call, err := c.ReadCall(ctx)
		if err != nil {
			return err
		}
		off, count, err := readArgs(call.Message())
		if err != nil {
			return errors.Join(err, c.Close())
		}
		head = appendReadReply(head[:0], binary.BigEndian.Uint32(call.Message()), uint32(count))
		if err := call.Reply(ctx, head, file[off:off+count]); err != nil {
			return err
		}
	}
}

// readArgs returns the offset and the length of a READ.
func readArgs(msg []byte) (off, count int, err error) {
	if len(msg) != readCallLen {
		return 0, 0, fmt.Errorf("a call of %d octets", len(msg))
	}
	args := msg[readCallLen-12:]
	from, n := binary.BigEndian.Uint64(args), uint64(binary.BigEndian.Uint32(args[8:]))
	if from > fileSize || n > fileSize-from {
		return 0, 0, fmt.Errorf("a READ of %d octets at %d", n, from)
	}
	return int(from), int(n), nil
}

// appendReadReply appends the reply to READ up to its octets, without attributes.
func appendReadReply(b []byte, xid, n uint32) []byte {
	const isReply, accepted, noFlavor, noVerifier, success, ok, noAttributes, notTheEnd = 1, 0, 0, 0, 0, 0, 0, 0
	return appendWords(b, xid, isReply, accepted, noFlavor, noVerifier, success, ok, noAttributes, n, notTheEnd, n)
}

// readCallLen is the length of a call of READ.
const readCallLen = 10*4 + 4 + handleLen + 12

// appendReadCall appends a call of READ.
func appendReadCall(b []byte, xid uint32, off uint64, n uint32) []byte {
	const isCall, rpcVersion, program, version, read = 0, 2, 100003, 3, 6
	b = appendWords(b, xid, isCall, rpcVersion, program, version, read, 0, 0, 0, 0, handleLen)
	b = append(b, make([]byte, handleLen)...)
	b = binary.BigEndian.AppendUint64(b, off)
	return appendWords(b, n)
}

func appendWords(b []byte, words ...uint32) []byte {
	for _, w := range words {
		b = binary.BigEndian.AppendUint32(b, w)
	}
	return b
}
