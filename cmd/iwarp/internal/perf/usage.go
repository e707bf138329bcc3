package perf

import (
	"encoding/binary"
	"time"

	"github.com/goiwarp/iwarp/cmd/iwarp/internal/peer"
)

// usageLen is the length of a peer.Usage on the control connection.
const usageLen = 16

func putUsage(b *[usageLen]byte, u peer.Usage) {
	binary.BigEndian.PutUint64(b[:], uint64(u.CPU))
	binary.BigEndian.PutUint64(b[8:], u.Mallocs)
}

func getUsage(b *[usageLen]byte) peer.Usage {
	return peer.Usage{CPU: time.Duration(binary.BigEndian.Uint64(b[:])), Mallocs: binary.BigEndian.Uint64(b[8:])}
}
