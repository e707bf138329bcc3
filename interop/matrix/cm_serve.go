package matrix

import (
	"encoding/binary"
	"errors"
	"net"
	"sync"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/cm"
	"github.com/goiwarp/iwarp/stag"
)

// A server accepts connections with Listener.Serve, each in a separate goroutine.
type server struct {
	end func() // stops listening, and waits until all connections have ended

	mu          sync.Mutex
	now, most   int // connections: at present, and at most at once
	established int
	errs        []error
}

// serveMany makes the listener of the case, and has serve called for each QP that is
// established, until this has ended. auth may be nil.
func (e *end) serveMany(auth *cm.Auth, serve func(*iwarp.QP) error) *server {
	lc := &iwarp.ListenConfig{SetupTimeout: e.t.pace.Stretch(setupTimeout), ProgressTimeout: e.t.pace.Stretch(progressTimeout)}
	if auth != nil {
		lc.Auth = auth
	}
	l, err := e.rnic.Listen(e.t.Ctx, "tcp", hostPort(OurIP), lc)
	require.NoError(e.t, err, "Listen")
	s := &server{}
	var running sync.WaitGroup
	running.Go(func() {
		err := l.Serve(e.t.Ctx, func(cr *iwarp.ConnRequest) {
			running.Add(1)
			defer running.Done()
			s.handle(e, cr, serve)
		})
		if !errors.Is(err, net.ErrClosed) {
			s.fail(err)
		}
	})
	s.end = sync.OnceFunc(func() {
		_ = l.Close() // a second time it does nothing
		running.Wait()
	})
	e.t.Cleanup(s.end)
	return s
}

// handle handles one connection.
func (s *server) handle(e *end, cr *iwarp.ConnRequest, serve func(*iwarp.QP) error) {
	s.count(+1)
	defer s.count(-1)
	qp, err := cr.Accept(e.t.Ctx, e.config(iwarp.QPConfig{}))
	if err != nil {
		s.fail(err)
		return
	}
	s.mu.Lock()
	s.established++
	s.mu.Unlock()
	if err := serve(qp); err != nil {
		s.fail(err)
	}
}

func (s *server) count(by int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now += by
	s.most = max(s.most, s.now)
}

func (s *server) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.errs = append(s.errs, err)
}

// failures returns the first three errors so far.
func (s *server) failures() []error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.errs[:min(len(s.errs), 3)]
}

// infoLen is the length of rping's message, which names a buffer by its address, STag and length.
const infoLen = 16

// answerPings is rping's server: it reads from the buffer that the client names first, writes the
// same octets to the buffer that the client names next, and announces each.
func (e *end) answerPings(qp *iwarp.QP) error {
	info := make([]byte, infoLen)
	message, err := e.pd.RegisterMR(info, stag.LocalWrite, nil)
	if err != nil {
		return err
	}
	data, err := e.pd.RegisterMR(make([]byte, served), ourAll, nil)
	if err != nil {
		return err
	}
	for reads := true; err == nil; reads = !reads {
		if _, err = qp.Recv(e.t.Ctx, message.Slice(0, infoLen)); err != nil {
			break
		}
		theirs := iwarp.RemoteBuffer{
			TO: binary.BigEndian.Uint64(info), STag: stag.STag(binary.BigEndian.Uint32(info[8:])), Len: binary.BigEndian.Uint32(info[12:]),
		}
		n := int(min(theirs.Len, served))
		if reads {
			err = qp.RDMARead(e.t.Ctx, data.Slice(0, n), at(theirs, 0, n))
		} else {
			err = qp.RDMAWrite(e.t.Ctx, at(theirs, 0, n), data.Slice(0, n))
		}
		if err == nil {
			err = qp.Send(e.t.Ctx, message.Slice(0, infoLen))
		}
	}
	if errors.Is(err, net.ErrClosed) && qp.Err() == nil {
		return qp.Close() // the client has left
	}
	return err
}
