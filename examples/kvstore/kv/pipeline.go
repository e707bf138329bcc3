package kv

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/cm"
	"github.com/goiwarp/iwarp/rma"
	"github.com/goiwarp/iwarp/stag"
)

// A Pipeline performs many Gets at one replica, several at a time, on its own connection: by sealed
// reads, or by plain RDMA Reads if the replica allows them. Only one goroutine may use it.
type Pipeline struct {
	r       reads
	shape   Shape
	lookups []Lookup
	numbers []int // of the outstanding Gets, by slot
	ends    []int // slots whose reads have ended
	where   *locations
	err     error // that Gets has returned
	auth    *cm.Auth
	rnic    *iwarp.RNIC
	pd      *iwarp.PD
}

// A reads performs the reads of a Pipeline.
type reads interface {
	// read requests octets, for the buffer of a slot.
	read(slot int, off uint64, n int) error
	// wait sends the requests, and appends the slots whose reads have ended to ends.
	wait(ctx context.Context, ends []int) ([]int, error)
	buffer(slot int) []byte // the octets of the last read
	close() error
}

// A PipelineConfig configures a Pipeline.
type PipelineConfig struct {
	Network, Addr string // of one replica
	Tenant        string
	Key           []byte
	Depth         int  // of the replica, see Config: 64
	Window        int  // outstanding Gets: Depth, which is also the maximum
	Plain         bool // RDMA Reads, without keys
	Locations     int  // how many locations of values it remembers
}

// pipelineTimeout is how long a sealed read may take. Many of them share a connection.
const pipelineTimeout = 10 * time.Second

// OpenPipeline connects.
func OpenPipeline(ctx context.Context, cfg *PipelineConfig) (p *Pipeline, err error) {
	name, err := nameOf(cfg.Tenant)
	if err != nil {
		return nil, err
	}
	depth, err := depthOf(cfg.Depth)
	if err != nil {
		return nil, err
	}
	window := cmp.Or(cfg.Window, depth)
	if window < 0 || window > depth {
		return nil, fmt.Errorf("kv: %d Gets under way: 1 to %d are possible", window, depth)
	}
	p = &Pipeline{lookups: make([]Lookup, window), numbers: make([]int, window), ends: make([]int, 0, window), where: newLocations(cfg.Locations)}
	if p.auth, err = authAs(name, cfg.Key); err != nil {
		return nil, err
	}
	if p.rnic, err = iwarp.Open(nil); err != nil {
		return nil, err
	}
	if p.pd, err = p.rnic.AllocPD(); err == nil {
		if cfg.Plain {
			err = p.openPlain(ctx, cfg, window)
		} else {
			err = p.openSealed(ctx, cfg, depth, window, regionOf(name))
		}
	}
	if err != nil {
		return nil, errors.Join(err, p.rnic.Close())
	}
	return p, nil
}

// Gets performs n Gets of the keys that key returns. It calls got with the outcome of each, in any order;
// value is valid until got returns, and only if the Verdict is Found. A Get whose value changes meanwhile
// starts again. After an error, including that of ctx, the Pipeline performs no more Gets: reads may be
// outstanding, and their ends would be taken for those of others.
func (p *Pipeline) Gets(ctx context.Context, n int, key func(i int) []byte, got func(i int, v Verdict, value []byte)) error {
	if p.err != nil {
		return fmt.Errorf("kv: the Pipeline has failed before: %w", p.err)
	}
	p.err = p.gets(ctx, n, key, got)
	return p.err
}

func (p *Pipeline) gets(ctx context.Context, n int, key func(i int) []byte, got func(i int, v Verdict, value []byte)) error {
	begun, done := 0, 0
	begin := func(slot int) error {
		p.numbers[slot] = begun
		begun++
		off, n := p.where.begin(&p.lookups[slot], p.shape, key(p.numbers[slot]))
		return p.r.read(slot, off, n)
	}
	for slot := 0; slot < len(p.lookups) && begun < n; slot++ {
		if err := begin(slot); err != nil {
			return err
		}
	}
	for done < n {
		var err error
		if p.ends, err = p.r.wait(ctx, p.ends[:0]); err != nil {
			return err
		}
		for _, slot := range p.ends {
			l := &p.lookups[slot]
			v, off, length := l.Next(p.r.buffer(slot))
			if v != ReadMore {
				p.where.ended(l, v)
			}
			if v == Stale {
				off, length = l.Begin(p.shape, l.key)
			}
			if v == ReadMore || v == Stale {
				err = p.r.read(slot, off, length)
			} else {
				got(p.numbers[slot], v, l.Value())
				if done++; begun < n {
					err = begin(slot)
				}
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// Close ends the connection.
func (p *Pipeline) Close() error { return errors.Join(p.r.close(), p.rnic.Close()) }

// A plainReads posts the RDMA Reads of a round as one list.
type plainReads struct {
	qp    *iwarp.QP
	cq    *iwarp.CQ
	where iwarp.RemoteBuffer
	mem   []byte // maxStored octets for each slot
	mr    *iwarp.MR
	sizes []int
	local []iwarp.SGE // by slot
	list  []iwarp.SendWR
	wcs   [64]iwarp.WC
}

func (p *Pipeline) openPlain(ctx context.Context, cfg *PipelineConfig, window int) (err error) {
	r := &plainReads{
		mem: make([]byte, window*maxStored), sizes: make([]int, window), local: make([]iwarp.SGE, window), list: make([]iwarp.SendWR, 0, window),
	}
	if r.cq, err = p.rnic.CreateCQ(2 * window); err != nil {
		return err
	}
	if r.mr, err = p.pd.RegisterMR(r.mem, stag.LocalWrite, nil); err != nil {
		return err
	}
	r.qp, err = p.rnic.Dial(ctx, cfg.Network, cfg.Addr, &iwarp.QPConfig{
		PD: p.pd, Auth: p.auth, PrivateData: []byte{byte(usePlain)}, SendCQ: r.cq, SendDepth: window, ORD: window,
		MPA: iwarp.MPAOptions{NoCRC: true},
	})
	if err != nil {
		return err
	}
	private := r.qp.PrivateData()
	if len(private) != 16+shapeLen {
		return fmt.Errorf("kv: the replica has answered with %d octets, not with %d", len(private), 16+shapeLen)
	}
	if err := p.shape.parse(private[16:]); err != nil {
		return err
	}
	p.r = r
	return r.where.UnmarshalBinary(private[:16])
}

func (r *plainReads) read(slot int, off uint64, n int) error {
	r.sizes[slot] = n
	r.local[slot] = r.mr.Slice(slot*maxStored, n)
	r.list = append(r.list, iwarp.SendWR{
		ID: uint64(slot), Op: iwarp.OpRDMARead, Local: r.local[slot : slot+1],
		Remote: iwarp.RemoteBuffer{STag: r.where.STag, TO: r.where.TO + off, Len: uint32(n)},
	})
	return nil
}

func (r *plainReads) wait(ctx context.Context, ends []int) ([]int, error) {
	if len(r.list) > 0 {
		if err := r.qp.PostSend(r.list...); err != nil {
			return ends, err
		}
		r.list = r.list[:0]
	}
	n, err := r.cq.Wait(ctx, r.wcs[:])
	if err != nil {
		return ends, err
	}
	for i := range r.wcs[:n] {
		if err := r.wcs[i].Err(); err != nil {
			return ends, err
		}
		ends = append(ends, int(r.wcs[i].ID))
	}
	return ends, nil
}

func (r *plainReads) buffer(slot int) []byte { return r.mem[slot*maxStored:][:r.sizes[slot]] }

func (r *plainReads) close() error { return r.qp.Abort() }

// A sealedReads posts the operations of a round as one list, to a Portal.
type sealedReads struct {
	client *rma.Client
	portal *rma.Portal
	handle *rma.Handle
	mem    []byte
	reads  []sealedRead // by slot
	list   []rma.Command
	ends   [64]rma.Completion
}

// A sealedRead is the last sealed read of a slot.
type sealedRead struct {
	cmd   rma.Command
	stale int // how often its key was an old one
}

// maxStale is how often a read is posted again because the region has another key each time it arrives.
const maxStale = 8

func (p *Pipeline) openSealed(ctx context.Context, cfg *PipelineConfig, depth, window int, region uint64) error {
	qc := iwarp.QPConfig{PD: p.pd, Auth: p.auth, PrivateData: []byte{byte(useGets)}}
	if err := rma.Prepare(p.rnic, &qc, 0, depth); err != nil {
		return err
	}
	qp, err := p.rnic.Dial(ctx, cfg.Network, cfg.Addr, &qc)
	if err != nil {
		return err
	}
	if err := p.shape.parse(qp.PrivateData()); err != nil {
		return err
	}
	r := &sealedReads{mem: make([]byte, window*maxStored), reads: make([]sealedRead, window), list: make([]rma.Command, 0, window)}
	r.client, err = rma.NewClient(ctx, qp, &rma.ClientConfig{
		PD: p.pd, MaxOp: maxStored, MaxSlots: window, OpTimeout: pipelineTimeout, ScratchLimit: scratch, Dispatch: [2]time.Duration{-1, -1},
	})
	if err != nil {
		return errors.Join(err, qp.Abort())
	}
	if r.handle, err = r.client.Open(ctx, region, rma.MayRead); err == nil {
		r.portal, err = r.client.Portal(window)
	}
	p.r = r
	if err != nil {
		return errors.Join(err, r.close())
	}
	return nil
}

func (r *sealedReads) read(slot int, off uint64, n int) error {
	cmd := rma.Command{Op: rma.Read, Handle: r.handle, Off: off, Buf: r.mem[slot*maxStored:][:n], Tag: uint64(slot)}
	r.reads[slot] = sealedRead{cmd: cmd}
	r.list = append(r.list, cmd)
	return nil
}

func (r *sealedReads) wait(ctx context.Context, ends []int) ([]int, error) {
	_, err := r.portal.PostAll(r.list, nil)
	r.list = r.list[:0]
	if err != nil {
		return ends, err
	}
	n, err := r.portal.Wait(ctx, r.ends[:])
	if err != nil {
		return ends, err
	}
	for i := range r.ends[:n] {
		slot := int(r.ends[i].Tag)
		again, err := r.again(slot, r.ends[i].Err)
		if err != nil {
			return ends, err
		}
		if !again {
			ends = append(ends, slot)
		}
	}
	if len(r.list) > 0 {
		err = r.handle.Reopen(ctx)
	}
	return ends, err
}

// again reports whether a read that has ended is to be posted again with the current key of the region, and lists it if so.
func (r *sealedReads) again(slot int, err error) (bool, error) {
	o, ok := errors.AsType[*rma.OpError](err)
	read := &r.reads[slot]
	if !ok || o.Outcome != rma.RemoteAuth || o.Reason != rma.StaleEpoch || read.stale == maxStale {
		return false, err
	}
	read.stale++
	r.list = append(r.list, read.cmd)
	return true, nil
}

func (r *sealedReads) buffer(slot int) []byte { return r.reads[slot].cmd.Buf }

func (r *sealedReads) close() error { return r.client.Close() }
