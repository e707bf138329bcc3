package attack

import (
	"strings"

	"github.com/goiwarp/iwarp/internal/hostile/octets"
)

// tcp sends octets that are not MPA, or only begin like MPA.
func tcp(d dice, _ Target) talk {
	return talk{messages: [][]byte{pick(d, noise...)(d)}}
}

// noise generates what an open port typically receives.
var noise = []func(d dice) []byte{
	func(dice) []byte { return nil },
	func(d dice) []byte { return d.octets(1 + d.IntN(4096)) },
	func(d dice) []byte { return make([]byte, 1+d.IntN(65536)) },
	func(d dice) []byte {
		return []byte("GET / HTTP/1.1\r\nHost: " + strings.Repeat("a", d.IntN(2000)) + "\r\n\r\n")
	},
	func(d dice) []byte { // the beginning of a ClientHello
		return append([]byte{0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3}, d.octets(d.IntN(600))...)
	},
	func(d dice) []byte { return []byte(octets.RequestKey)[:d.IntN(len(octets.RequestKey)+1)] },
	func(d dice) []byte { return append([]byte(octets.ReplyKey), d.octets(4+d.IntN(64))...) },
	func(d dice) []byte { return append([]byte(octets.RequestKey), d.octets(d.IntN(1200))...) },
}
