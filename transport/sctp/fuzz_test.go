package sctp

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzControl reads session control messages. What was read means the same
// when it is written.
func FuzzControl(f *testing.F) {
	for _, seed := range []string{"0000 0001 61", "0000 0002", "0000 0003 6e6f", "0007 0004", "0000 0005 0010 0008", "0000 0007", "0000 0007 0001 0002 6e6f"} {
		f.Add(octets(seed))
	}
	f.Fuzz(func(t *testing.T, msg []byte) {
		c, err := parseControl(msg)
		if err != nil {
			require.ErrorAs(t, err, new(*ViolationError))
			return
		}
		require.LessOrEqual(t, len(c.private), MaxPrivateData)
		if c.bare {
			return
		}
		again, err := parseControl(c.append(nil))
		require.NoError(t, err)
		c.frame, again.frame = nil, nil // reserved bits, which have no meaning, are written as zeros
		require.Equal(t, c, again)
	})
}

// FuzzSession: a peer sends any messages in any order. No place in the order is taken twice,
// nothing follows the end, and what is kept is bounded.
func FuzzSession(f *testing.F) {
	message := func(ppid byte, s string) []byte {
		b := octets(s)
		return append([]byte{ppid, byte(len(b))}, b...)
	}
	f.Add(bytes.Join([][]byte{message(17, "0000 0002"), message(16, "0001 41"), message(17, "0002 0004")}, nil))
	f.Add(bytes.Join([][]byte{message(16, "0002 42"), message(16, "0001 41"), message(17, "0000 0006 0000 0000")}, nil))
	f.Add(bytes.Join([][]byte{message(17, "0000 0001"), message(17, "0003 0004"), message(16, "7fff 41")}, nil))
	f.Fuzz(func(t *testing.T, input []byte) {
		var s session
		seen := make(map[uint64]bool)
		for len(input) >= 2 {
			n := min(int(input[1]), len(input)-2)
			msg := input[2:][:n]
			ended := s.ended()
			seq, segment, c, err := s.receive(uint32(input[0]), msg)
			input = input[2+n:]
			if err != nil {
				require.ErrorAs(t, err, new(*ViolationError))
				return
			}
			require.False(t, ended, "nothing follows the end")
			require.LessOrEqual(t, s.in.top-s.in.next, uint64(window)+1)
			if segment != nil {
				require.False(t, seen[seq], "place %d", seq)
				seen[seq] = true
				require.Equal(t, binary.BigEndian.Uint16(msg), uint16(seq+1))
				require.Nil(t, c)
				if s.keep(seq, segment) != nil {
					return
				}
				require.LessOrEqual(t, s.held, earlyLimit)
			}
		}
	})
}
