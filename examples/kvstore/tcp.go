package main

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/goiwarp/iwarp/examples/kvstore/kv"
)

// The baseline: requests and answers over a TCP connection, with many requests outstanding. A request is
// the length of a key in one octet, and the key; an answer is the length of the value in four octets, and
// the value.
const (
	tcpBuffer   = 64 << 10
	answerHead  = 4
	noSuchValue = 0xffffffff
)

// serveTCP answers the requests of one connection from the memory of a replica. It sends the answers when
// it has no further request, or no room for an answer.
func serveTCP(c net.Conn, r *kv.Replica, tenant uint64) error {
	in, out := bufio.NewReaderSize(c, tcpBuffer), bufio.NewWriterSize(c, 2*tcpBuffer)
	for {
		if in.Buffered() == 0 {
			if err := out.Flush(); err != nil {
				return err
			}
		}
		key, err := peekKey(in)
		if err != nil {
			return err
		}
		if out.Available() < answerHead+kv.MaxValue {
			if err := out.Flush(); err != nil {
				return err
			}
		}
		b := out.AvailableBuffer()
		value, ok := r.AppendValue(append(b, 0, 0, 0, 0), tenant, key)
		n := uint32(len(value) - answerHead)
		if !ok {
			n = noSuchValue
		}
		binary.BigEndian.PutUint32(value, n)
		if _, err := out.Write(value); err != nil {
			return err
		}
		if _, err := in.Discard(1 + len(key)); err != nil {
			return err
		}
	}
}

// peekKey returns the key of the next request.
func peekKey(in *bufio.Reader) ([]byte, error) {
	n, err := in.Peek(1)
	if err != nil {
		return nil, err
	}
	b, err := in.Peek(1 + int(n[0]))
	if err != nil {
		return nil, errors.Join(io.ErrUnexpectedEOF, err)
	}
	return b[1:], nil
}

// A tcpClient is the client of one connection.
type tcpClient struct {
	c     net.Conn
	in    *bufio.Reader
	out   *bufio.Writer
	depth int
}

func dialTCP(addr string, depth int) (*tcpClient, error) {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	return &tcpClient{c: c, in: bufio.NewReaderSize(c, tcpBuffer), out: bufio.NewWriterSize(c, tcpBuffer), depth: depth}, nil
}

// gets performs n Gets. It sends as many requests at once as it has received answers.
func (t *tcpClient) gets(n int, key func(i int) []byte, got func(i int, value []byte)) error {
	for sent, done := 0, 0; done < n; {
		for ; sent < n && sent-done < t.depth; sent++ {
			k := key(sent)
			_ = t.out.WriteByte(byte(len(k))) // Flush returns the error
			_, _ = t.out.Write(k)
		}
		if err := t.out.Flush(); err != nil {
			return err
		}
		for {
			if err := t.answer(done, got); err != nil {
				return err
			}
			if done++; done == sent || t.in.Buffered() == 0 {
				break
			}
		}
	}
	return nil
}

// answer reads the answer to request i.
func (t *tcpClient) answer(i int, got func(i int, value []byte)) error {
	head, err := t.in.Peek(answerHead)
	if err != nil {
		return err
	}
	n := binary.BigEndian.Uint32(head)
	if n > kv.MaxValue {
		return fmt.Errorf("an answer with a value of %d octets", n)
	}
	b, err := t.in.Peek(answerHead + int(n))
	if err != nil {
		return err
	}
	got(i, b[answerHead:])
	_, err = t.in.Discard(len(b))
	return err
}

func (t *tcpClient) close() error { return t.c.Close() }
