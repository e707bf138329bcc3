package connectperf

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/authmode"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/peer"
	"github.com/goiwarp/iwarp/stag"
)

// A server takes the connections of one client. Over a control connection it sends the addresses
// of its services as one JSON object, by authentication and raw; then it answers each line
// with a usage.
type server struct {
	delay  time.Duration
	rnic   *iwarp.RNIC
	pd     *iwarp.PD
	word   []byte // the RemoteBuffer that clients read
	failed atomic.Int64

	mu   sync.Mutex
	held []net.Conn // raw
}

// A usage is the resources that the server has used.
type usage struct {
	CPU    time.Duration
	Peak   uint64
	Failed int64 // set-ups
}

// What a client sends on the control connection.
const (
	sayUsage = "usage" // since the process began
	sayClear = "clear" // and drop raw connections and the memory of those that have ended
)

// serve runs a server until stdin ends.
func serve(ctx context.Context, delay time.Duration, stdin io.Reader, stdout io.Writer) error {
	ctx, cancel := peer.Left(ctx, stdin)
	defer cancel()
	s := &server{delay: delay}
	addrs, err := s.open(ctx)
	if err != nil {
		return err
	}
	defer s.rnic.Close() //nolint:errcheck // the process ends
	control, err := peer.Listen("127.0.0.1", "")
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { _ = control.Close() })()
	peer.Announce(stdout, control.Addr())
	for {
		c, err := control.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return err
		}
		go s.control(c, addrs)
	}
}

// open starts all services.
func (s *server) open(ctx context.Context) (addrs map[string]string, err error) {
	if s.rnic, err = iwarp.Open(&iwarp.Config{Limits: iwarp.Limits{MaxHalfOpen: authmode.MaxHalfOpen}}); err != nil {
		return nil, err
	}
	if s.pd, err = s.rnic.AllocPD(); err != nil {
		return nil, err
	}
	mr, err := s.pd.RegisterMR(make([]byte, wordLen), stag.RemoteRead, nil)
	if err != nil {
		return nil, err
	}
	if s.word, err = mr.Advertise(0, wordLen).AppendBinary(nil); err != nil {
		return nil, err
	}
	addrs = make(map[string]string)
	if addrs[howRaw], err = s.openRaw(); err != nil {
		return nil, err
	}
	for _, auth := range authmode.All {
		if addrs[auth], err = s.openIWARP(ctx, auth); err != nil {
			return nil, err
		}
	}
	return addrs, nil
}

func (s *server) control(c net.Conn, addrs map[string]string) {
	defer c.Close() //nolint:errcheck // it has ended
	w := json.NewEncoder(c)
	if w.Encode(addrs) != nil {
		return
	}
	for in := bufio.NewScanner(c); in.Scan(); {
		if in.Text() == sayClear {
			s.clear()
		}
		if w.Encode(usage{CPU: peer.CPU(), Peak: peer.ResidentMemory().Peak, Failed: s.failed.Load()}) != nil {
			return
		}
	}
}

func (s *server) clear() {
	s.mu.Lock()
	for _, c := range s.held {
		_ = c.Close() // the client has reset it
	}
	s.held = nil
	s.mu.Unlock()
	peer.KeptMemory()
	peer.ForgetPeak()
}

// openIWARP serves connections that are authenticated in one way.
func (s *server) openIWARP(ctx context.Context, auth string) (string, error) {
	lc := &iwarp.ListenConfig{MaxHalfOpen: authmode.MaxHalfOpen, SetupTimeout: peer.Timeout, ProgressTimeout: peer.Timeout}
	if err := authmode.Respond(auth, lc); err != nil {
		return "", err
	}
	if s.delay > 0 {
		return s.openDelayed(ctx, lc)
	}
	l, err := s.rnic.Listen(ctx, "tcp", "127.0.0.1:0", lc)
	if err != nil {
		return "", err
	}
	go l.Serve(ctx, func(cr *iwarp.ConnRequest) { s.accept(ctx, cr) }) //nolint:errcheck // ends with the process
	return l.Addr().String(), nil
}

// openDelayed serves connections whose answers are delayed.
func (s *server) openDelayed(ctx context.Context, lc *iwarp.ListenConfig) (string, error) {
	return s.listen(func(c *net.TCPConn) {
		cr, err := s.rnic.Server(ctx, delayed{c, s.delay}, lc)
		if err != nil {
			s.failed.Add(1)
			return
		}
		s.accept(ctx, cr)
	})
}

func (s *server) accept(ctx context.Context, cr *iwarp.ConnRequest) {
	if _, err := cr.Accept(ctx, &iwarp.QPConfig{PD: s.pd, PrivateData: s.word}); err != nil && !errors.Is(err, iwarp.ErrAuth) { // which is what an attacker gets
		s.failed.Add(1)
	}
}

// openRaw serves the baseline.
func (s *server) openRaw() (string, error) {
	return s.listen(func(c *net.TCPConn) {
		var b [rawLen]byte
		_, err := io.ReadFull(c, b[:])
		if err == nil {
			time.Sleep(s.delay)
			_, err = c.Write(b[:])
		}
		if err != nil {
			s.failed.Add(1)
		}
		s.mu.Lock()
		s.held = append(s.held, c)
		s.mu.Unlock()
	})
}

// listen makes take be called for each connection, in a goroutine of its own, until the process ends.
func (s *server) listen(take func(*net.TCPConn)) (string, error) {
	l, err := peer.Listen("127.0.0.1", "")
	if err != nil {
		return "", err
	}
	go func() {
		for {
			c, err := l.AcceptTCP()
			if err != nil {
				s.failed.Add(1)
				return
			}
			go take(c)
		}
	}()
	return l.Addr().String(), nil
}
