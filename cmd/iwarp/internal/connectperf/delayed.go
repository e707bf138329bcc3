package connectperf

import (
	"net"
	"time"
)

// A delayed connection is one to a peer that takes a while for each answer, as the paper's RNIC
// does.
type delayed struct {
	*net.TCPConn
	by time.Duration
}

func (c delayed) Write(p []byte) (int, error) {
	time.Sleep(c.by)
	return c.TCPConn.Write(p)
}
