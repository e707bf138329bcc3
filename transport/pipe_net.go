package transport

import (
	"fmt"
	"net"
	"sync"
	"syscall"
)

// pipeNetwork is the name of the network whose connections are pipes within the
// process and whose addresses are any strings.
const pipeNetwork = "pipe"

type pipeAddr string

func (pipeAddr) Network() string  { return pipeNetwork }
func (a pipeAddr) String() string { return string(a) }

// pipeBacklog is how many connections of a listener may wait to be accepted.
const pipeBacklog = 128

var pipeListeners struct {
	sync.Mutex
	byName map[pipeAddr]*pipeListener
	named  int // number of names that listenPipe has chosen
	dialed int // number of calls of dialPipe
}

type pipeListener struct {
	addr    pipeAddr
	options PipeOptions

	mu      sync.Mutex
	changed sync.Cond
	backlog []*pipeConn
	closed  bool
}

// listenPipe listens at the name addr, or at a name of its choice if addr is empty.
func listenPipe(addr string, o PipeOptions) (net.Listener, error) {
	reg := &pipeListeners
	reg.Lock()
	defer reg.Unlock()
	name := pipeAddr(addr)
	_, used := reg.byName[name]
	for addr == "" && (name == "" || used) {
		reg.named++
		name = pipeAddr(fmt.Sprintf("pipe-%d", reg.named))
		_, used = reg.byName[name]
	}
	if used {
		return nil, &net.OpError{Op: "listen", Net: pipeNetwork, Addr: name, Err: syscall.EADDRINUSE}
	}
	l := &pipeListener{addr: name, options: o}
	l.changed.L = &l.mu
	if reg.byName == nil {
		reg.byName = make(map[pipeAddr]*pipeListener)
	}
	reg.byName[name] = l
	return l, nil
}

// dialPipe connects to a listener of this process. It does not wait until the connection
// is accepted; neither does a TCP handshake.
func dialPipe(addr string) (net.Conn, error) {
	reg := &pipeListeners
	reg.Lock()
	name := pipeAddr(addr)
	l := reg.byName[name]
	reg.dialed++
	local := pipeAddr(fmt.Sprintf("%s#%d", addr, reg.dialed))
	reg.Unlock()
	if l != nil {
		c, s := newPipe(l.options, local, name)
		if l.push(s) {
			return c, nil
		}
	}
	return nil, &net.OpError{Op: "dial", Net: pipeNetwork, Addr: name, Err: syscall.ECONNREFUSED}
}

// push queues a connection. It reports false if the listener is closed or its backlog full.
func (l *pipeListener) push(c *pipeConn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || len(l.backlog) == pipeBacklog {
		return false
	}
	l.backlog = append(l.backlog, c)
	l.changed.Signal()
	return true
}

func (l *pipeListener) Accept() (net.Conn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for !l.closed && len(l.backlog) == 0 {
		l.changed.Wait()
	}
	if l.closed {
		return nil, &net.OpError{Op: "accept", Net: pipeNetwork, Addr: l.addr, Err: net.ErrClosed}
	}
	c := l.backlog[0]
	l.backlog = append(l.backlog[:0], l.backlog[1:]...)
	return c, nil
}

// Close frees the name and resets the connections that are not accepted.
func (l *pipeListener) Close() error {
	reg := &pipeListeners
	reg.Lock()
	if reg.byName[l.addr] == l {
		delete(reg.byName, l.addr)
	}
	reg.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return &net.OpError{Op: "close", Net: pipeNetwork, Addr: l.addr, Err: net.ErrClosed}
	}
	l.closed = true
	for _, c := range l.backlog {
		_ = c.Abort() // cannot fail: nothing else can have closed it
	}
	l.backlog = nil
	l.changed.Broadcast()
	return nil
}

func (l *pipeListener) Addr() net.Addr { return l.addr }
