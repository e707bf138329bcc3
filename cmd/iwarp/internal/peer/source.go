package peer

// SourceOf returns n octets to send. It has written to them: memory that was never written to is one
// page of zeros throughout, which is always in the nearest cache.
func SourceOf(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i)
	}
	return b
}
