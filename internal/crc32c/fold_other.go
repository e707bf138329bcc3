//go:build !amd64 || purego

package crc32c

// fold takes nothing of p: hash/crc32 does it all.
func fold(crc uint32, p []byte) (uint32, []byte) { return crc, p }

// foldCopy takes nothing of src.
func foldCopy(crc uint32, dst, src []byte) (uint32, []byte, []byte) { return crc, dst, src }
