package target

import (
	"context"
	"encoding/binary"
	"io"
	"os"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/examples/nvme/capsule"
	"github.com/goiwarp/iwarp/stag"
)

// pick returns one of the values.
func pick[T any](a *attacker, list ...T) T { return list[a.rng.IntN(len(list))] }

// random returns n octets.
func (a *attacker) random(n int) []byte {
	p := make([]byte, n)
	for i := range p {
		p[i] = byte(a.rng.Uint32())
	}
	return p
}

// queues connects, with or without an I/O queue. The attack uses the last queue.
func (a *attacker) queues() *line {
	s := a.connect(a.rng.IntN(2))
	l := s.admin
	if len(s.io) > 0 {
		l = s.io[0]
	}
	l.cut = true
	return l
}

// sqe returns a command. Most commands have some meaning.
func (a *attacker) sqe() []byte {
	b := a.random(capsule.SQESize)
	if a.rng.IntN(8) == 0 {
		return b
	}
	b[0] = pick[byte](a, 0, 1, 1, 2, 2, 4, 5, 6, 8, 9, 0x0a, 0x0c, 0x18, 0x7f, b[0])
	b[1] = pick[byte](a, 0x40, 0x40, 0x40, b[1])
	b[4] = pick[byte](a, 0, 1, 4, b[4])
	binary.LittleEndian.PutUint16(b[2:], uint16(a.rng.IntN(200)))
	if b[0] != 0x7f {
		binary.LittleEndian.PutUint32(b[4:], pick[uint32](a, 0, 1, 1, 1, 2, 0xffffffff))
	}
	for i := 40; i < 64; i += 4 {
		binary.LittleEndian.PutUint32(b[i:], pick(a, 0, 0, 1, 7, 0xffffffff, a.rng.Uint32()))
	}
	size := pick(a, 0, 1, 512, 1024, lba, lba, 2*lba, 8*lba, 0xffffff, a.rng.Uint32()&0xffffff)
	mr := pick(a, a.mr, a.ro)
	key := pick(a, uint32(mr.STag()), uint32(mr.STag()), uint32(a.trap), a.rng.Uint32())
	sgl := capsule.KeyedSGL(key, pick(a, mr.Advertise(0, 1).TO, 0, a.rng.Uint64(), ^uint64(0)), size, a.rng.IntN(2) == 0)
	if a.rng.IntN(3) == 0 {
		sgl = capsule.InCapsuleSGL(pick(a, 0, 1, a.rng.Uint64()), size)
	}
	copy(b[24:40], sgl[:])
	return b
}

// capsules sends possible commands, some with octets after them, some shorter or longer than is allowed.
func (a *attacker) capsules() {
	l := a.queues()
	for range 20 {
		msg := append(a.sqe(), a.random(pick(a, 0, 0, 0, 1, 1024, lba, a.rng.IntN(lba)))...)
		switch a.rng.IntN(40) {
		case 0:
			msg = msg[:a.rng.IntN(capsule.SQESize)]
		case 1:
			msg = append(msg, make([]byte, 2*lba)...)
		}
		l.sendRaw(msg)
		if a.rng.IntN(4) == 0 {
			a.drain(l)
		}
	}
	a.drain(l)
}

// drain takes responses until no more come: all are well-formed.
func (a *attacker) drain(l *line) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	for {
		if _, err := l.cq.Wait(ctx, l.wcs[:]); err != nil {
			return
		}
		wc := &l.wcs[0]
		if wc.Err() != nil {
			return
		}
		if wc.Op == iwarp.OpRecv {
			cqe, err := capsule.ParseCQE(l.mem[int(wc.ID)*responseSize:][:wc.Len])
			require.NoError(a.t, err)
			a.got[cqe.Status]++
			_ = l.post(l.qp, int(wc.ID))
		}
	}
}

// flood sends more commands than the queue has entries.
func (a *attacker) flood() {
	l := a.queues()
	sgl := capsule.KeyedSGL(uint32(a.ro.STag()), a.ro.Advertise(0, 1).TO, lba, false)
	for range 2 * l.entries {
		sqe := pick(a, rw(capsule.OpWrite, 1, 1, sgl), capsule.AsyncEventSQE(0), capsule.FlushSQE(0, 1))
		l.send(sqe)
	}
	a.drain(l)
}

// regions uses regions of the target, and others, in ways that no NVMe host does.
func (a *attacker) regions() {
	l := a.queues()
	sinks := []stag.STag{a.trap, stag.STag(a.rng.Uint32())}
	for _, q := range a.w.target.all() {
		q.bufs.mu.Lock()
		for _, b := range q.bufs.all {
			if b != nil {
				sinks = append(sinks, b.mr.STag())
			}
		}
		q.bufs.mu.Unlock()
		sinks = append(sinks, q.recvs.mr.STag())
	}
	at := iwarp.RemoteBuffer{STag: pick(a, sinks...), TO: pick(a, 0, a.rng.Uint64()), Len: 16}
	local := []iwarp.SGE{a.mr.Slice(0, 16)}
	wr := pick(a,
		iwarp.SendWR{Op: iwarp.OpRDMAWrite, Local: local, Remote: at},
		iwarp.SendWR{Op: iwarp.OpSendInvalidate, Inline: a.sqe(), Invalidate: at.STag},
		iwarp.SendWR{Op: iwarp.OpImmediate},
	)
	_ = l.qp.PostSend(wr)
	time.Sleep(time.Second)
	require.NotEqual(a.t, iwarp.StateRTS, l.qp.State(), "%v of %v ends the queue", wr.Op, at.STag)
}

// noConnect sends commands, or nothing, without Connect.
func (a *attacker) noConnect() {
	l, err := a.dial(uint16(a.rng.IntN(2)), 32, nil)
	require.NoError(a.t, err)
	l.cut = true
	for range a.rng.IntN(4) {
		l.sendRaw(a.sqe())
		a.drain(l)
	}
	time.Sleep(11 * time.Second)
	<-l.qp.Done()
}

// octets sends arbitrary octets after a Request, or instead of one.
func (a *attacker) octets() {
	c := a.w.raw()
	if a.rng.IntN(2) == 0 {
		a.w.reply(c, linux(0, 32))
	}
	_, _ = c.Write(a.random(a.rng.IntN(3000)))
	require.NoError(a.t, c.SetReadDeadline(time.Now().Add(time.Minute)))
	_, err := io.Copy(io.Discard, c)
	require.NotErrorIs(a.t, err, os.ErrDeadlineExceeded, "the target ends the connection")
	_ = c.Close()
}

// stall stops reading while the target sends, or waits for data.
func (a *attacker) stall() {
	s := a.connect(0)
	l, err := a.dial(1, 32, func(qc *iwarp.QPConfig) { qc.Setup, qc.RNRWait = nil, iwarp.RNRWaitForever })
	require.NoError(a.t, err)
	require.NoError(a.t, l.post(l.qp, 0))
	require.Equal(a.t, capsule.Success, l.connect(storage, s.cntlid).Status)
	l.cut = true
	l.send(capsule.FlushSQE(0, 1))
	l.send(capsule.FlushSQE(0, 1))
	time.Sleep(time.Second)
	p := make([]byte, big)
	for range 20 {
		l.send(pick(a, rw(capsule.OpRead, 0, 255, l.writable(p)), rw(capsule.OpWrite, 0, 255, l.readable(p))))
	}
	time.Sleep(40 * time.Second)
}
