package rdma9p

// An assembler finds the messages in the octets that a handler writes, however the writes are split.
type assembler struct {
	head [headerSize]byte
	n    int64  // octets of the message so far
	size int64  // of the message, once the header is complete
	body []byte // where the message goes; nil: nowhere
}

// add takes octets until the header, or the message, is complete, and returns how many it has taken. When the header is
// complete, the caller must call begin.
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

// begin sets the size of the message and where it goes.
func (a *assembler) begin(size uint32, body []byte) {
	a.size, a.body = int64(size), body
	copy(a.body, a.head[:])
}

func (a *assembler) complete() bool { return a.n >= headerSize && a.n == a.size }

func (a *assembler) reset() { a.n, a.size, a.body = 0, 0, nil }
