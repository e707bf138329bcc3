package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/cm"
	"github.com/goiwarp/iwarp/stag"
)

// A note is the Send that follows a Write: its round, and its number in the round. The answer is
// one octet.
const (
	noteLen = 8
	right   = 1
	wrong   = 0
)

// pattern fills data with what process from writes to process to.
func pattern(data []byte, from, to int, note []byte) {
	seed := fmt.Appendf(nil, "%d %d %x", from, to, note)
	_, _ = rand.NewChaCha8(sha256.Sum256(seed)).Read(data) // never fails
}

// listen begins to accept connections.
func (p *process) listen(ctx context.Context, addr string) (string, error) {
	var err error
	if p.ring, err = cm.NewRing(p.keys.server(time.Time{})); err != nil {
		return "", err
	}
	auth, err := cm.New(&cm.Config{
		Ring: p.ring, ID: nameOf(p.self),
		Authorize: func(_ context.Context, peer iwarp.Peer, _ []byte) error {
			_, err := p.numberOf(peer)
			return err
		},
	})
	if err != nil {
		return "", err
	}
	l, err := p.rnic.Listen(ctx, "tcp", addr, &iwarp.ListenConfig{Auth: auth})
	if err != nil {
		return "", err
	}
	// Serve, and not Accept in a loop: the Accept of one connection waits for its client.
	go func() { _ = l.Serve(ctx, func(cr *iwarp.ConnRequest) { _ = p.serve(ctx, cr) }) }()
	return l.Addr().String(), nil
}

// numberOf returns the number of the process that is the client.
func (p *process) numberOf(peer iwarp.Peer) (int, error) {
	if peer.Kind == cm.KindDerived {
		for i := range p.links {
			if i != p.self && peer.Name == nameOf(i) {
				return i, nil
			}
		}
	}
	return 0, fmt.Errorf("%q is no other process of the mesh", peer.Name)
}

// serve provides memory to a client, and verifies what it has written, until the connection ends.
// No other connection can use the memory, since the connection has its own PD.
func (p *process) serve(ctx context.Context, cr *iwarp.ConnRequest) (err error) {
	pd, err := p.rnic.AllocPD()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, pd.Close()) }()
	lent, note := make([]byte, p.size), make([]byte, noteLen+1)
	lentMR, err := pd.RegisterMR(lent, stag.LocalWrite|stag.RemoteWrite, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lentMR.Close()) }()
	noteMR, err := pd.RegisterMR(note, stag.LocalWrite, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, noteMR.Close()) }()
	where, err := lentMR.Advertise(0, p.size).AppendBinary(nil)
	if err != nil {
		return err
	}
	qp, err := cr.Accept(ctx, &iwarp.QPConfig{PD: pd, PrivateData: where})
	if err != nil {
		return err
	}
	defer func() { _ = qp.Abort() }() // does nothing if the QP has ended
	peer, _ := qp.Peer()
	from, err := p.numberOf(peer)
	if err != nil {
		return err
	}
	p.accepted(peer.KeyID)
	expected := make([]byte, p.size)
	for {
		if _, err := qp.Recv(ctx, noteMR.Slice(0, noteLen)); err != nil {
			return err
		}
		pattern(expected, from, p.self, note[:noteLen])
		note[noteLen] = wrong
		if bytes.Equal(lent, expected) {
			note[noteLen] = right
			p.count(binary.BigEndian.Uint32(note), from)
		}
		if err := qp.Send(ctx, noteMR.Slice(noteLen, 1)); err != nil {
			return err
		}
	}
}

func (p *process) accepted(key uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.perKey[key]++
}

func (p *process) count(round uint32, from int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.seen[round] == nil {
		p.seen[round] = make([]int, len(p.links))
	}
	p.seen[round][from]++
}

// report returns what this process has verified as a server.
func (p *process) report(_ context.Context, c *command) (reply, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	seen := slices.Clone(p.seen[c.Round])
	if seen == nil {
		seen = make([]int, len(p.links))
	}
	return reply{Seen: seen, PerKey: maps.Clone(p.perKey)}, nil
}
