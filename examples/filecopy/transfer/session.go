package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/goiwarp/iwarp/stag"
)

// A session serves one client.
type session struct {
	control
	root *os.Root
	log  *slog.Logger
}

// A brokenError is an error after which the connection cannot continue. Any other error
// of a transfer is sent to the client as an answer.
type brokenError struct{ error }

func (e brokenError) Unwrap() error { return e.error }

func broken(err error) error {
	if err == nil {
		return nil
	}
	return brokenError{err}
}

// run serves transfers until the client ends the connection. When a transfer is
// answered, nothing of it remains: no region, no open file, no temporary name.
func (s *session) run(ctx context.Context) error {
	for {
		var req request
		switch err := s.recv(ctx, &req); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		sum, err := s.transfer(ctx, &req)
		if e := (brokenError{}); errors.As(err, &e) {
			return err
		}
		if err := s.answer(ctx, &req, sum, err); err != nil {
			return err
		}
	}
}

// transfer performs the client's request and returns the SHA-256 of the file.
func (s *session) transfer(ctx context.Context, req *request) (sum string, err error) {
	if req.Op != opPut && req.Op != opGet {
		return "", broken(fmt.Errorf("a request to %q out of turn", req.Op))
	}
	name, err := localName(req.Name)
	if err != nil {
		return "", err
	}
	if req.Op == opPut {
		return s.put(ctx, name, req.Size)
	}
	return s.get(ctx, name)
}

// put receives a file.
func (s *session) put(ctx context.Context, name string, size int64) (sum string, err error) {
	in, err := create(s.root, name, size)
	if err != nil {
		return "", err
	}
	defer in.discard()
	done, err := s.offer(ctx, in.fileBuffer, stag.LocalWrite|stag.RemoteWrite)
	if err != nil {
		return "", err
	}
	if sum, err = s.sum(ctx, in.fileBuffer); err != nil {
		return "", err
	}
	if sum != done.Sum {
		return "", fmt.Errorf("the file has come with SHA-256 %s, which is not the client's", sum)
	}
	return sum, in.keep()
}

// get offers a file to the client.
func (s *session) get(ctx context.Context, name string) (sum string, err error) {
	f, err := openBelow(s.root, name)
	if err != nil {
		return "", err
	}
	defer quietly(f)
	if _, err := s.offer(ctx, f, stag.RemoteRead); err != nil {
		return "", err
	}
	return s.sum(ctx, f)
}

// sum returns the sum of a file. The client chooses the length, so the computation ends with the connection.
func (s *session) sum(ctx context.Context, f fileBuffer) (string, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-s.qp.Done():
			cancel(broken(fmt.Errorf("the client has left before the end of a transfer: %w", io.ErrUnexpectedEOF)))
		case <-ctx.Done():
		}
	}()
	return f.sum(ctx)
}

// offer gives the client access to a file until it says that it is done. When offer
// returns, the client can neither read nor change the file any more.
func (s *session) offer(ctx context.Context, f fileBuffer, access stag.Access) (*request, error) {
	mr, err := s.register(f, access)
	if err != nil {
		return nil, err
	}
	var done request
	if err = s.send(ctx, &reply{Region: advertise(mr)}); err == nil {
		err = s.recv(ctx, &done)
	}
	switch {
	case errors.Is(err, io.EOF):
		err = fmt.Errorf("the client has left in the middle of a transfer: %w", io.ErrUnexpectedEOF)
	case err == nil && done.Op != opDone:
		err = fmt.Errorf("a request to %q in the middle of a transfer", done.Op)
	}
	if cerr := deregister(mr); err == nil {
		err = cerr
	}
	return &done, broken(err)
}

// answer tells the client how its transfer has ended.
func (s *session) answer(ctx context.Context, req *request, sum string, err error) error {
	if err != nil {
		s.log.Warn(req.Op+" refused", "name", req.Name, "err", err)
		text := err.Error()
		return s.send(ctx, &reply{Error: text[:min(len(text), maxText)]})
	}
	s.log.Info(req.Op, "name", req.Name, "sha256", sum)
	return s.send(ctx, &reply{Sum: sum, Stats: s.qp.Stats()})
}
