package peer

// SourceOf is n octets to send. They are written to: memory that never was is the same
// page of zeros all over, which is always in the nearest cache.
func SourceOf(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i)
	}
	return b
}
