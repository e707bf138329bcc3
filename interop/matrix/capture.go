package matrix

import (
	"bytes"
	"encoding/binary"
	"net"
	"os"
	"sync"
	"time"
)

const (
	// captureLimit is the size at which a capture ends, to keep memory and files small.
	captureLimit = 12 << 20
	snapLen      = 256 << 10
)

// A capture records the frames of a device in pcap format.
type capture struct {
	done chan struct{}

	mu     sync.Mutex
	ending bool
	file   bytes.Buffer
}

func (c *capture) put(v uint32) {
	c.file.Write(binary.NativeEndian.AppendUint32(nil, v))
}

func (c *capture) add(now time.Time, frame []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.file.Len()+len(frame) > captureLimit {
		return
	}
	c.put(uint32(now.Unix()))
	c.put(uint32(now.Nanosecond()))
	c.put(uint32(len(frame)))
	c.put(uint32(len(frame)))
	c.file.Write(frame)
}

func (c *capture) stopped() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ending
}

// stop ends the capture when no more frames arrive, and writes it to a file.
func (c *capture) stop(file string) error {
	c.mu.Lock()
	c.ending = true
	c.mu.Unlock()
	<-c.done
	return os.WriteFile(file, c.file.Bytes(), 0o644)
}

// find returns what follows the first occurrence of key in the frames so far, n octets.
func (c *capture) find(key string, n int) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := bytes.Index(c.file.Bytes(), []byte(key))
	if i < 0 {
		return nil
	}
	i += len(key)
	return bytes.Clone(c.file.Bytes()[i:min(i+n, c.file.Len())])
}

// largestFPDU returns the largest length of an FPDU from siw that carries an RDMA Write,
// as far as one begins with a packet.
func (t *T) largestFPDU() int {
	const ethernet, ip = 14, 20
	largest := 0
	t.capture.frames(func(frame []byte) {
		if len(frame) < ethernet+ip+20 || net.IP(frame[ethernet+12:ethernet+16]).String() != PeerIP {
			return
		}
		tcp := frame[ethernet+ip:]
		payload := tcp[min(int(tcp[12]>>4)*4, len(tcp)):]
		const taggedWrite = 0x40 // RDMAP version 1, opcode 0
		if len(payload) > 4 && payload[2]&0x80 != 0 && payload[3] == taggedWrite {
			largest = max(largest, int(binary.BigEndian.Uint16(payload)))
		}
	})
	return largest
}

// frames calls f for everything captured so far.
func (c *capture) frames(f func(frame []byte)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	const fileHeader, recordHeader = 24, 16
	b := c.file.Bytes()[fileHeader:]
	for len(b) >= recordHeader {
		n := int(binary.NativeEndian.Uint32(b[8:]))
		f(b[recordHeader : recordHeader+n])
		b = b[recordHeader+n:]
	}
}
