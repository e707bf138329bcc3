package matrix

import (
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// captureBuffer is how much the kernel buffers while we are not running.
const captureBuffer = 64 << 20

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
	c := &capture{done: make(chan struct{})}
	if err := c.open(fd, dev.Index, all); err != nil {
		_ = unix.Close(fd)
		return nil, err
	}
	go c.read(fd)
	return c, nil
}

func (c *capture) open(fd, index int, protocol uint16) error {
	if err := unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: protocol, Ifindex: index}); err != nil {
		return err
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, captureBuffer); err != nil {
		return err
	}
	const version, zone, accuracy, ethernet = 4<<16 | 2, 0, 0, 1
	for _, v := range []uint32{0xa1b23c4d, version, zone, accuracy, snapLen, ethernet} {
		c.put(v)
	}
	// So that the reader notices the end.
	return unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: 50_000})
}

func (c *capture) read(fd int) {
	defer close(c.done)
	defer func() { _ = unix.Close(fd) }()
	b := make([]byte, snapLen)
	for {
		n, _, err := unix.Recvfrom(fd, b, 0)
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
