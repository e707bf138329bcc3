package sctpkernel

import (
	"context"
	"maps"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/goiwarp/iwarp/transport/sctp"
)

// A Listener accepts sessions of peers. All methods may be called from any goroutine.
type Listener struct {
	cfg     Config
	sock    *socket
	addr    Addr
	backlog *sctp.Backlog
	running sync.WaitGroup // the goroutine that accepts

	mu   sync.Mutex
	open map[*association]struct{}
}

// Listen listens at addr, as [Addr] writes it. The host may be empty, for all addresses of
// the machine, and the port may be 0. At most backlog sessions, but at least one, may wait for
// Accept; further ones are refused by a Terminate message (RFC 5043 section 6.4).
func Listen(ctx context.Context, cfg Config, addr string, backlog int) (*Listener, error) {
	l := &Listener{cfg: cfg.withDefaults(), backlog: sctp.NewBacklog(backlog, cfg.Refused), open: make(map[*association]struct{})}
	if err := l.listen(ctx, addr); err != nil {
		return nil, &net.OpError{Op: "listen", Net: Network, Err: err}
	}
	l.running.Go(l.accept)
	return l, nil
}

func (l *Listener) listen(ctx context.Context, addr string) error {
	at, err := resolve(ctx, addr)
	if err != nil {
		return err
	}
	if l.sock, err = listen(l.cfg, at); err != nil {
		return err
	}
	if l.addr, err = l.sock.addrs(localAddrs); err != nil {
		l.sock.close()
		return err
	}
	if at.IPs == nil {
		l.addr.IPs = nil
	}
	return nil
}

// Addr returns the address of the listener, an [Addr].
func (l *Listener) Addr() net.Addr { return l.addr }

// Accept returns the next session that a peer requests. When an outage begins, it returns the reason once: see [Listener.Outage].
// After Close the error matches net.ErrClosed.
func (l *Listener) Accept() (*sctp.Request, error) { return l.backlog.Accept() }

// Outage returns why no association of a peer can be accepted now, for example because the process has no file descriptor left, or nil.
// An outage ends with the next association that is accepted. Sessions may arrive on existing associations.
func (l *Listener) Outage() error { return l.backlog.Outage() }

// pause keeps a lasting error of accept, such as too many open files, from turning into a
// busy loop.
const pause = 50 * time.Millisecond

// accept accepts the associations of peers until the socket is closed.
func (l *Listener) accept() {
	for {
		sock, err := l.sock.accept()
		if err != nil && l.backlog.Closed() {
			return
		}
		l.backlog.SetOutage(err)
		if err != nil {
			time.Sleep(pause)
			continue
		}
		l.add(sock)
	}
}

// add starts an association if there are not too many.
func (l *Listener) add(sock *socket) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.backlog.Closed() || len(l.open) >= maxAssociations {
		sock.abort()
		return
	}
	l.open[start(sock, l, false)] = struct{}{}
}

// Close accepts no more sessions, and refuses those that Accept has not returned. The
// other sessions continue.
func (l *Listener) Close() {
	if !l.backlog.Close() {
		return
	}
	l.sock.close()
	l.running.Wait()
	for _, a := range l.associations() {
		a.Retire()
	}
}

// Over reports whether the Listener was closed and all its associations have ended.
func (l *Listener) Over() bool { return l.backlog.Closed() && len(l.associations()) == 0 }

// End closes the Listener, ends every association, and waits until they have ended.
func (l *Listener) End() {
	l.Close()
	var ends sync.WaitGroup
	for _, a := range l.associations() {
		ends.Go(a.End)
	}
	ends.Wait()
}

func (l *Listener) associations() []*association {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Collect(maps.Keys(l.open))
}

// asked reads the request of a peer.
func (l *Listener) asked(s *stream) { l.backlog.Ask(context.Background(), s) }

// idled ends an association without sessions if no other session can follow. Otherwise the peer
// may use it for a while.
func (l *Listener) idled(a *association) {
	if l.backlog.Closed() {
		a.Retire()
	}
}

func (l *Listener) ended(a *association) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.open, a)
}
