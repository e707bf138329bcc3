package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"net"
	"os"
	"path"
	"strings"
	"sync"

	"github.com/goiwarp/iwarp/examples/internal/program"
)

// A server puts files below its root.
type server struct {
	root *os.Root

	mu  sync.Mutex // of log
	log io.Writer
}

// serve accepts connections until ctx ends, and then ends them.
func (s *server) serve(ctx context.Context, l net.Listener) error {
	ctx, stop := context.WithCancel(ctx)
	var all sync.WaitGroup
	defer all.Wait()
	defer stop()
	closing := context.AfterFunc(ctx, func() { _ = l.Close() })
	defer closing()
	for {
		c, err := l.Accept()
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return errors.Join(err, l.Close())
		}
		all.Go(func() {
			abort := program.AtEnd(ctx, func() { _ = c.Close() })
			err := (&session{root: s.root, conn: c}).run()
			if abort() {
				err = errors.Join(err, c.Close())
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			if err != nil {
				_, _ = fmt.Fprintf(s.log, "rcopy: %v: %v\n", c.RemoteAddr(), err)
			}
		})
	}
}

// A session is one connection.
type session struct {
	root *os.Root
	conn io.ReadWriter
	file *os.File // nil: none is open
}

// run serves commands until the client ends the stream, or one fails.
func (s *session) run() error {
	defer func() { _ = s.closeFile() }() // if the client has not closed it
	for {
		h, err := readHeader(s.conn)
		if err == io.EOF { //nolint:errorlint // readHeader does not wrap it
			return nil
		}
		if err != nil {
			return err
		}
		status, err := s.serve(h)
		reply := header{command: h.command | answer, length: headerSize, data: status, id: h.id}
		if _, failed := s.conn.Write(reply.append(nil)); err == nil {
			err = failed
		}
		if err != nil {
			return err
		}
	}
}

// serve executes one command. After an error the connection ends, once the status was sent.
func (s *session) serve(h header) (status uint32, err error) {
	switch h.command {
	case open:
		return s.open(h)
	case write:
		return s.write(h)
	case closes:
		if err := s.closeFile(); err != nil {
			return statusOf(err, ioError), err
		}
		return 0, nil
	}
	return invalid, fmt.Errorf("an unknown command: %d", h.command)
}

func (s *session) open(h header) (uint32, error) {
	b, err := readBody(s.conn, h, 2, maxPath)
	if err != nil {
		return invalid, err
	}
	name, _, ended := bytes.Cut(b, []byte{0}) // octets after it mean nothing
	if !ended || s.file != nil {
		return invalid, errors.New("a file is open, or its name has no end")
	}
	// An absolute path of the client is relative to the root here.
	local := strings.TrimPrefix(path.Clean("/"+string(name)), "/")
	if info, err := s.root.Stat(local); err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		return invalid, fmt.Errorf("%q is no file", local) // opening a pipe would wait for its other end
	}
	s.file, err = s.root.OpenFile(local, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, os.FileMode(h.data&0o777))
	if err != nil {
		var named *fs.PathError
		if errors.As(err, &named) { // its text contains the name as the client sent it
			err = named.Err
		}
		return statusOf(err, noSuchFile), fmt.Errorf("open %q: %w", local, err)
	}
	return 0, nil
}

func (s *session) write(h header) (uint32, error) {
	b, err := readBody(s.conn, h, 8, 8)
	if err != nil {
		return invalid, err
	}
	size := binary.LittleEndian.Uint64(b)
	if s.file == nil || size > math.MaxInt64 {
		return invalid, fmt.Errorf("a write of %d octets, or of no file", size)
	}
	if _, err := io.CopyN(s.file, s.conn, int64(size)); err != nil {
		return statusOf(err, ioError), unexpected(err)
	}
	return 0, nil
}

func (s *session) closeFile() error {
	if s.file == nil {
		return nil
	}
	err := s.file.Close()
	s.file = nil
	return err
}
