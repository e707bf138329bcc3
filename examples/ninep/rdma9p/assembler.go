package rdma9p

// An assembler finds the messages in the octets that a handler writes, however they are cut.
type assembler struct {
	head [headerSize]byte
	n    int64  // octets of the message so far
	size int64  // of the message, when the header is there
	body []byte // where the message goes; nil: nowhere
}

// add takes octets until the header, or the message, is complete, and tells how many it has taken. When the header is
// complete the caller calls begin.
func (a *assembler) add(p []byte) int {
	var k int
	if a.n < headerSize {
		k = copy(a.head[a.n:], p)
	} else {
		k = int(min(int64(len(p)), a.size-a.n))
		if a.body != nil {
			copy(a.body[a.n:a.size], p[:k])
		}
	}
	a.n += int64(k)
	return k
}

func (a *assembler) hasHeader() bool { return a.n == headerSize }

// begin gives the message its size and its place.
func (a *assembler) begin(size uint32, body []byte) {
	a.size, a.body = int64(size), body
	copy(a.body, a.head[:])
}

func (a *assembler) complete() bool { return a.n >= headerSize && a.n == a.size }

func (a *assembler) reset() { a.n, a.size, a.body = 0, 0, nil }
