//go:build !amd64 || purego

package crc32c

import "math"

// least is how many octets are worth a fold. Here there is none.
const least = math.MaxInt

func fold(crc uint32, p []byte) (uint32, []byte) { return crc, p }

func foldCopy(crc uint32, dst, src []byte) (uint32, []byte, []byte) { return crc, dst, src }
