package nfsclient

import (
	"context"
	"fmt"

	"github.com/goiwarp/iwarp/rpcrdma"
)

const program, version = 100003, 3

// Procedures of NFSv3 (RFC 1813).
const (
	procGetattr     = 1
	procLookup      = 3
	procReadlink    = 5
	procRead        = 6
	procWrite       = 7
	procCreate      = 8
	procMkdir       = 9
	procSymlink     = 10
	procRename      = 14
	procReaddirplus = 17
)

// A Status is the status of a reply; 0 is success.
type Status uint32

func (s Status) Error() string { return fmt.Sprintf("NFS status %d", uint32(s)) }

// A handle is a file handle.
type handle []byte

// A conn calls a server.
type conn struct {
	*rpcrdma.Client
	machine string // in the credentials, which it makes longer
	xid     uint32
}

// begin begins a call.
func (c *conn) begin(proc uint32) (m message) {
	c.xid++
	m.word(c.xid, 0, 2, program, version, proc)
	var credentials message
	credentials.word(0)
	credentials.opaque([]byte(c.machine))
	credentials.word(0, 0, 0) // root, and no more groups
	const authSys, authNone = 1, 0
	m.word(authSys)
	m.opaque(credentials)
	m.word(authNone, 0)
	return m
}

// do makes a call, and returns the reply after a status of success, and how many octets are in r.Result.
func (c *conn) do(ctx context.Context, r *rpcrdma.Request) (*reader, int, error) {
	if r.MaxReply == 0 {
		r.MaxReply = 512 // of all that is no list; it fits into a message
	}
	reply, err := c.Do(ctx, r)
	if err != nil {
		return nil, 0, err
	}
	in := &reader{b: reply.Message}
	in.take(8) // XID, and that it is a reply
	denied := in.word()
	in.word()
	in.opaque() // the verifier
	if status := in.word(); in.err != nil || denied != 0 || status != 0 {
		return nil, 0, fmt.Errorf("nfsclient: the call was not executed: denied %d, status %d, %w", denied, status, in.err)
	}
	if status := Status(in.word()); status != 0 {
		return nil, 0, status
	}
	return in, reply.Result, in.err
}

func (c *conn) size(ctx context.Context, h handle) (uint64, error) {
	m := c.begin(procGetattr)
	m.opaque(h)
	in, _, err := c.do(ctx, &rpcrdma.Request{Head: m})
	if err != nil {
		return 0, err
	}
	in.take(20)
	return in.long(), in.err
}

func (c *conn) lookup(ctx context.Context, dir handle, name string) (handle, error) {
	m := c.begin(procLookup)
	m.opaque(dir)
	m.opaque([]byte(name))
	in, _, err := c.do(ctx, &rpcrdma.Request{Head: m})
	if err != nil {
		return nil, err
	}
	return in.opaque(), in.err
}

// made returns the handle in the reply of CREATE and MKDIR.
func (c *conn) made(ctx context.Context, m message) (handle, error) {
	in, _, err := c.do(ctx, &rpcrdma.Request{Head: m})
	if err != nil {
		return nil, err
	}
	if in.word() == 0 {
		return nil, fmt.Errorf("nfsclient: no handle of what was made")
	}
	return in.opaque(), in.err
}

func (c *conn) create(ctx context.Context, dir handle, name string) (handle, error) {
	m := c.begin(procCreate)
	m.opaque(dir)
	m.opaque([]byte(name))
	m.word(0) // UNCHECKED
	m.attributes(0o644)
	return c.made(ctx, m)
}

func (c *conn) mkdir(ctx context.Context, dir handle, name string) (handle, error) {
	m := c.begin(procMkdir)
	m.opaque(dir)
	m.opaque([]byte(name))
	m.attributes(0o755)
	return c.made(ctx, m)
}

// write returns how many octets were written.
func (c *conn) write(ctx context.Context, h handle, off uint64, data []byte) (int, error) {
	m := c.begin(procWrite)
	m.opaque(h)
	m.long(off)
	const fileSync = 2
	m.word(uint32(len(data)), fileSync, uint32(len(data)))
	in, _, err := c.do(ctx, &rpcrdma.Request{Head: m, Data: data})
	if err != nil {
		return 0, err
	}
	in.changes()
	return int(in.word()), in.err
}

// read reads into b, and returns how many octets it has read.
func (c *conn) read(ctx context.Context, h handle, off uint64, count int, b []byte) (n int, eof bool, err error) {
	m := c.begin(procRead)
	m.opaque(h)
	m.long(off)
	m.word(uint32(count))
	in, there, err := c.do(ctx, &rpcrdma.Request{Head: m, Result: b})
	if err != nil {
		return 0, false, err
	}
	in.optional(attributesLen)
	n, eof = int(in.word()), in.word() != 0
	if in.word() != uint32(n) || there != 0 && there != n {
		return 0, false, fmt.Errorf("nfsclient: %d octets were read, and %d are there", n, there)
	}
	if there == 0 {
		copy(b, in.take(n))
	}
	return n, eof, in.err
}

func (c *conn) symlink(ctx context.Context, dir handle, name, to string) (handle, error) {
	m := c.begin(procSymlink)
	m.opaque(dir)
	m.opaque([]byte(name))
	m.attributes(0o777)
	m.word(uint32(len(to)))
	in, _, err := c.do(ctx, &rpcrdma.Request{Head: m, Data: []byte(to)})
	if err != nil {
		return nil, err
	}
	if in.word() == 0 {
		return c.lookup(ctx, dir, name)
	}
	return in.opaque(), in.err
}

func (c *conn) readlink(ctx context.Context, h handle) (string, error) {
	m := c.begin(procReadlink)
	m.opaque(h)
	b := make([]byte, 4096)
	in, there, err := c.do(ctx, &rpcrdma.Request{Head: m, Result: b})
	if err != nil {
		return "", err
	}
	in.optional(attributesLen)
	n := int(in.word())
	if there == 0 {
		b = in.take(n)
	}
	if in.err != nil || n > len(b) {
		return "", fmt.Errorf("nfsclient: a link of %d octets: %w", n, in.err)
	}
	return string(b[:n]), nil
}

func (c *conn) rename(ctx context.Context, dir handle, from, to string) error {
	m := c.begin(procRename)
	m.opaque(dir)
	m.opaque([]byte(from))
	m.opaque(dir)
	m.opaque([]byte(to))
	_, _, err := c.do(ctx, &rpcrdma.Request{Head: m})
	return err
}

// names lists a directory by READDIRPLUS. Each reply has at most max octets of entries.
func (c *conn) names(ctx context.Context, dir handle, most uint32) (names map[string]bool, err error) {
	names = make(map[string]bool)
	var cookie, verifier uint64
	for {
		m := c.begin(procReaddirplus)
		m.opaque(dir)
		m.long(cookie)
		m.long(verifier)
		m.word(most, most)
		in, _, err := c.do(ctx, &rpcrdma.Request{Head: m, MaxReply: int(most) + 1024})
		if err != nil {
			return nil, err
		}
		in.optional(attributesLen)
		verifier = in.long()
		for in.word() != 0 {
			in.long()
			names[string(in.opaque())] = true
			cookie = in.long()
			in.optional(attributesLen)
			if in.word() != 0 {
				in.opaque()
			}
		}
		if end := in.word() != 0; end || in.err != nil {
			return names, in.err
		}
	}
}
