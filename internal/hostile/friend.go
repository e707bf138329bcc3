package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/stag"
)

// What a friend does: blockLen octets are written and read, and noteLen are sent and come back, once in pace.
const (
	blockLen = 4096
	noteLen  = 64
	pace     = 2 * time.Millisecond
	patience = 30 * time.Second // for one operation
)

// A friend is an honest peer.
type friend struct {
	v      *victim
	id     uint64
	qp     *iwarp.QP
	mem    []byte // a block to write, one to read into, a note to send, one to receive
	mr     *iwarp.MR
	count  uint64
	err    error // what was wrong
	theirs []byte

	// Of the victim's end, when it has met.
	met    chan error
	server *iwarp.QP
	remote iwarp.RemoteBuffer
	end    chan iwarp.Event
}

// dials connects a friend.
func (f *friends) dials(ctx context.Context, addr string) (*friend, error) {
	p := &friend{
		v: f.v, mem: make([]byte, 2*(blockLen+noteLen)), theirs: make([]byte, blockLen), met: make(chan error, 1), end: make(chan iwarp.Event, 1),
	}
	f.mu.Lock()
	f.next++
	p.id = f.next
	f.coming[p.id] = p
	f.mu.Unlock()
	var err error
	if p.mr, err = f.pd.RegisterMR(p.mem, stag.LocalWrite, nil); err != nil {
		return nil, err
	}
	word := binary.BigEndian.AppendUint64(bytes.Clone(f.word), p.id)
	if p.qp, err = f.rnic.Dial(ctx, "tcp", addr, &iwarp.QPConfig{PD: f.pd, PrivateData: word}); err != nil {
		_ = p.mr.Close()
		return nil, err
	}
	select {
	case err = <-p.met:
	case <-time.After(patience):
		err = errors.New("the other end is not there")
	}
	if err != nil {
		_ = p.leaves()
		return nil, err
	}
	return p, nil
}

// arrives returns the friend whose number is in the private data, or nil if there is none.
func (f *friends) arrives(number []byte) *friend {
	if len(number) != 8 {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	id := binary.BigEndian.Uint64(number)
	p := f.coming[id]
	delete(f.coming, id)
	return p
}

// leaves aborts the connection.
func (p *friend) leaves() error { return errors.Join(p.qp.Abort(), p.mr.Close()) }

// works reads and writes until ctx ends. It then completes the outstanding operation, so that nothing is left for the next phase.
func (p *friend) works(ctx context.Context, h *histogram) {
	t := time.NewTicker(pace)
	defer t.Stop()
	for p.err == nil {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		began := time.Now()
		p.err = p.operates()
		h.add(time.Since(began))
	}
}

// operates writes, reads, sends and receives, and verifies every octet.
func (p *friend) operates() error {
	ctx, cancel := context.WithTimeout(p.v.ctx, patience)
	defer cancel()
	p.count++
	out, back := p.mem[:blockLen], p.mem[blockLen:2*blockLen]
	for i := 0; i < blockLen; i += 8 {
		binary.BigEndian.PutUint64(out[i:], p.count*0x9e3779b97f4a7c15+uint64(i)+p.id<<48)
	}
	if err := p.qp.RDMAWrite(ctx, p.remote, p.mr.Slice(0, blockLen)); err != nil {
		return fmt.Errorf("friend %d: write %d: %w", p.id, p.count, err)
	}
	if err := p.qp.RDMARead(ctx, p.mr.Slice(blockLen, blockLen), p.remote); err != nil {
		return fmt.Errorf("friend %d: read %d: %w", p.id, p.count, err)
	}
	if !bytes.Equal(out, back) {
		return fmt.Errorf("friend %d: read %d: it is not what was written", p.id, p.count)
	}
	return p.talks(ctx, out[:noteLen])
}

// talks sends a note, which must come back.
func (p *friend) talks(ctx context.Context, note []byte) error {
	const at = 2 * blockLen
	copy(p.mem[at:], note)
	if err := p.qp.Send(ctx, p.mr.Slice(at, noteLen)); err != nil {
		return fmt.Errorf("friend %d: send %d: %w", p.id, p.count, err)
	}
	n, err := p.qp.Recv(ctx, p.mr.Slice(at+noteLen, noteLen))
	if err != nil {
		return fmt.Errorf("friend %d: receive %d: %w", p.id, p.count, err)
	}
	if !bytes.Equal(note, p.mem[at+noteLen:][:n]) {
		return fmt.Errorf("friend %d: message %d is not what was sent", p.id, p.count)
	}
	return nil
}
