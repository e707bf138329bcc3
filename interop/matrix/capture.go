package matrix

import (
	"bytes"
	"encoding/binary"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// captureLimit is where a capture ends, to keep memory and files small.
	captureLimit = 12 << 20
	// captureBuffer is what the kernel keeps for us while we are not running.
	captureBuffer = 64 << 20
	snapLen       = 256 << 10
)

// A capture records the frames of a device in pcap's format.
type capture struct {
	fd   int
	done chan struct{}

	mu     sync.Mutex
	ending bool
	file   bytes.Buffer
}

func startCapture(device string) (*capture, error) {
	dev, err := net.InterfaceByName(device)
	if err != nil {
		return nil, err
	}
	const all = unix.ETH_P_ALL << 8 // in network order
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, all)
	if err != nil {
		return nil, err
	}
	c := &capture{fd: fd, done: make(chan struct{})}
	if err := c.open(dev.Index, all); err != nil {
		_ = unix.Close(fd)
		return nil, err
	}
	go c.read()
	return c, nil
}

func (c *capture) open(index int, protocol uint16) error {
	if err := unix.Bind(c.fd, &unix.SockaddrLinklayer{Protocol: protocol, Ifindex: index}); err != nil {
		return err
	}
	if err := unix.SetsockoptInt(c.fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, captureBuffer); err != nil {
		return err
	}
	const version, zone, accuracy, ethernet = 4<<16 | 2, 0, 0, 1
	for _, v := range []uint32{0xa1b23c4d, version, zone, accuracy, snapLen, ethernet} {
		c.put(v)
	}
	// So that the reader notices the end.
	return unix.SetsockoptTimeval(c.fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: 50_000})
}

func (c *capture) put(v uint32) {
	c.file.Write(binary.NativeEndian.AppendUint32(nil, v))
}

func (c *capture) read() {
	defer close(c.done)
	b := make([]byte, snapLen)
	for {
		n, _, err := unix.Recvfrom(c.fd, b, 0)
		switch err {
		case nil:
			c.add(time.Now(), b[:n])
		case unix.EAGAIN, unix.EINTR:
			if c.stopped() {
				return
			}
		default:
			return
		}
	}
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

// stop ends the capture when nothing more comes, and writes it to a file.
func (c *capture) stop(file string) error {
	c.mu.Lock()
	c.ending = true
	c.mu.Unlock()
	<-c.done
	_ = unix.Close(c.fd)
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
