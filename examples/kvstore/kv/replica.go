package kv

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/regionkey"
	"github.com/goiwarp/iwarp/rma"
)

// A Tenant is a tenant that a replica serves.
type Tenant struct {
	Name  string // 1 to 16 octets
	Shape Shape
}

// A Config configures a Replica. Both replicas of a pair have the same tenants, and the same LogHalf.
type Config struct {
	Network, Addr string // to listen on
	// Backup is the address of the backup; empty: this replica is the backup.
	Backup  string
	Path    string // of the durable file, which is made if it does not exist
	LogHalf uint64 // octets of half of the log, which cannot change after the file was made: 16 MiB
	Master  []byte // the key from which all others are derived: MasterLen octets
	Tenants []Tenant
	// Plain serves RDMA Reads without keys, too: each tenant gets the STag of its memory.
	Plain bool
	// Frozen says that there are no changes while there are such Reads. The Reads then need not exclude
	// changes, which makes them faster.
	Frozen bool
	Depth  int          // operations that each client may have outstanding, 1 to 1,024: 64
	Logger *slog.Logger // nil: no log. A Warn says why the primary has no connection to the backup, once for each reason

	hold func(stage) // for tests: called when changes have reached a stage
}

// A stage is how far changes have progressed.
type stage int

const (
	stageLogged  stage = iota // they are in the log of the primary
	stageDurable              // they are also in the log of the backup
	stageShown                // the clients of the backup see them
)

func (c *Config) reached(s stage) {
	if c.hold != nil {
		c.hold(s)
	}
}

const (
	defaultHalf  = 16 << 20
	defaultDepth = 64
	maxDepth     = 1024      // the default of Limits.MaxIRD and MaxORD, which RDMA Reads without keys need
	scratch      = 256 << 20 // octets that package rma may use, 64 KiB for each outstanding operation
	clientWindow = 8         // requests for changes that a client may have outstanding
)

// depthOf returns the Depth of a configuration, or an error if it is invalid.
func depthOf(depth int) (int, error) {
	if depth < 0 || depth > maxDepth {
		return 0, fmt.Errorf("kv: a Depth of %d: 1 to %d are possible", depth, maxDepth)
	}
	return cmp.Or(depth, defaultDepth), nil
}

// A Replica is one of the two servers of a store.
type Replica struct {
	cfg    Config
	rnic   *iwarp.RNIC
	pd     *iwarp.PD
	server *rma.Server
	l      *iwarp.Listener
	log    *logFile // used by the primary's writer, or the backup's session
	tables map[uint64]*table
	plain  map[uint64]loan
	stop   context.CancelFunc
	tasks  sync.WaitGroup // of the replica itself
	conns  sync.WaitGroup // of connections
	served chan struct{}  // closed when clients are served
	failed chan struct{}  // closed when the replica has failed

	sessions sync.Mutex    // of the backup: one primary at a time
	session  *replicated   // the newest one
	turn     chan struct{} // holds a token while a session may write the log

	mu      sync.Mutex
	regions map[uint64]*rma.Region
	version uint64 // of the latest change
	writer  *writer
	err     error // why the replica no longer works
	closed  bool
}

// Open opens the durable file and listens. A primary serves clients once it has reached its backup, and a
// backup once a primary has connected to it: see [Replica.Served].
func Open(ctx context.Context, cfg *Config) (r *Replica, err error) {
	r = &Replica{
		cfg: *cfg, served: make(chan struct{}), failed: make(chan struct{}), turn: make(chan struct{}, 1), tables: make(map[uint64]*table),
		plain: make(map[uint64]loan), regions: make(map[uint64]*rma.Region),
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.Close())
		}
	}()
	if r.cfg.LogHalf == 0 {
		r.cfg.LogHalf = defaultHalf
	}
	if r.cfg.Depth, err = depthOf(cfg.Depth); err != nil {
		return r, err
	}
	if r.cfg.Logger == nil {
		r.cfg.Logger = slog.New(slog.DiscardHandler)
	}
	for _, t := range cfg.Tenants {
		table, err := newTable(t.Name, t.Shape)
		if err != nil {
			return r, err
		}
		if r.tables[table.id] != nil || table.id == noTenant {
			return r, fmt.Errorf("kv: there are two tenants %q", t.Name)
		}
		r.tables[table.id] = table
	}
	if r.log, err = openLog(ctx, cfg.Path, r.cfg.LogHalf); err != nil {
		return r, err
	}
	if err := r.recover(ctx); err != nil {
		return r, err
	}
	return r, r.listen(ctx)
}

func (r *Replica) primary() bool { return r.cfg.Backup != "" }

// recover reads the log.
func (r *Replica) recover(ctx context.Context) error {
	log := r.log
	if log.mark.generation == 0 {
		if r.primary() {
			return log.start(ctx)
		}
		return nil
	}
	end, exact, behind := log.mark.tail, true, log.half // a backup may have more octets after its mark, even of another primary
	switch {
	case end == openTail && !r.primary():
		return fmt.Errorf("kv: %s is the log of a primary", r.cfg.Path)
	case end == openTail: // the last batch may be incomplete
		end, exact, behind = log.half, false, maxBatch
	}
	from := mark{generation: log.mark.generation}
	var begun uint64
	at, err := log.scan(from, end, exact, func(c *change) error {
		begun = max(begun, c.begun())
		return r.apply(c)
	})
	if err != nil {
		return err
	}
	// The beginning of a generation was durable before it became the log, so this is not a torn last batch. The backup, which
	// may have the previous generation, must not get only the rest.
	if at.generation > 1 && at.tail < max(begun, 1) {
		return fmt.Errorf("kv: the log in %s is damaged: generation %d ends at octet %d, within what it has begun with", r.cfg.Path, at.generation, at.tail)
	}
	if !r.primary() {
		return nil
	}
	if exact { // the backup has become the primary: the old primary must not write to the new backup
		if err := log.rename(); err != nil {
			return err
		}
	}
	return log.recovered(ctx, at, behind)
}

// apply makes a change that is in the log.
func (r *Replica) apply(c *change) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c.tenant == noTenant {
		r.version = max(r.version, c.version)
		return nil
	}
	t := r.tables[c.tenant]
	if t == nil {
		return fmt.Errorf("kv: the log has a change of tenant %#x, which is not configured", c.tenant)
	}
	r.version = max(r.version, c.version)
	return t.apply(c)
}

// digest returns a digest of the tenants, which both replicas must have, and of the shapes of their memory.
func (r *Replica) digest() [sha256.Size]byte {
	var b []byte
	for _, id := range slices.Sorted(maps.Keys(r.tables)) {
		b = r.tables[id].shape.append(binary.LittleEndian.AppendUint64(b, id))
	}
	return sha256.Sum256(b)
}

// listen begins to accept connections.
func (r *Replica) listen(ctx context.Context) (err error) {
	if r.rnic, err = iwarp.Open(&iwarp.Config{Logger: r.cfg.Logger}); err != nil {
		return err
	}
	if r.pd, err = r.rnic.AllocPD(); err != nil {
		return err
	}
	r.server = rma.NewServer(&rma.ServerConfig{
		PD: r.pd, Authorize: authorize, MaxOp: maxStored, Depth: r.cfg.Depth, ScratchLimit: scratch, Logger: r.cfg.Logger,
	})
	auth, err := authServer(r.cfg.Master, r.cfg.Logger, r.judge)
	if err != nil {
		return err
	}
	if r.l, err = r.rnic.Listen(ctx, r.cfg.Network, r.cfg.Addr, &iwarp.ListenConfig{Auth: auth}); err != nil {
		return err
	}
	var tasks context.Context
	tasks, r.stop = context.WithCancel(context.WithoutCancel(ctx))
	if r.primary() {
		r.writer = newWriter(r)
		r.tasks.Go(func() { r.writer.run(tasks) })
	} else if r.log.mark.generation > 0 {
		if err := r.serve(); err != nil {
			return err
		}
	}
	r.tasks.Go(func() { _ = r.l.Serve(tasks, func(cr *iwarp.ConnRequest) { r.accept(tasks, cr) }) })
	return nil
}

// serve lets clients use the memory of their tenants.
func (r *Replica) serve() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.serving() {
		return nil
	}
	for id, t := range r.tables {
		region, err := r.server.Register(id, t.memory, &rma.RegionOptions{Ops: rma.MayRead})
		if err != nil {
			return err
		}
		r.regions[id] = region
		if r.cfg.Plain {
			l, err := r.lend(t)
			if err != nil {
				return err
			}
			r.plain[id] = l
		}
	}
	close(r.served)
	return nil
}

// serving reports whether clients are served.
func (r *Replica) serving() bool {
	select {
	case <-r.served:
		return true
	default:
		return false
	}
}

// Served returns a channel that is closed when clients are served.
func (r *Replica) Served() <-chan struct{} { return r.served }

// Addr returns the address that the replica listens at.
func (r *Replica) Addr() net.Addr { return r.l.Addr() }

// Failed returns a channel that is closed when the replica no longer works: see Err.
func (r *Replica) Failed() <-chan struct{} { return r.failed }

// Err returns why the replica no longer works, nil if it works.
func (r *Replica) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// fail stops a replica whose durable file or memory may be wrong. Work that Close has interrupted is not a failure.
func (r *Replica) fail(err error) {
	r.mu.Lock()
	first := r.err == nil && (!r.closed || !errors.Is(err, context.Canceled))
	if first {
		r.err = err
		close(r.failed)
	}
	r.mu.Unlock()
	if first {
		r.cfg.Logger.Error("the replica ends", "err", err)
		_ = r.l.Close()
		_ = r.rnic.Close()
	}
}

// Rekey gives the memory of a tenant its next key. Gets with the previous key still succeed during grace,
// which may be 0; after that, clients request the new key.
func (r *Replica) Rekey(ctx context.Context, tenant string, grace time.Duration) (regionkey.Epoch, error) {
	id, err := RegionOf(tenant)
	if err != nil {
		return 0, err
	}
	r.mu.Lock()
	region := r.regions[id]
	r.mu.Unlock()
	if region == nil {
		return 0, fmt.Errorf("kv: tenant %q is not served", tenant)
	}
	return region.Rekey(ctx, nil, grace)
}

// AppendValue appends a value to dst, for a server that answers requests itself. It is for comparisons:
// at a primary that is making changes it may return a value that the backup does not have.
func (r *Replica) AppendValue(dst []byte, tenant uint64, key []byte) (value []byte, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.tables[tenant]
	if t == nil {
		return dst, false
	}
	return t.get(dst, key)
}

// Close aborts all connections and closes the durable file. Acknowledged changes are durable.
func (r *Replica) Close() error {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	if r.stop != nil {
		r.stop()
	}
	if r.l != nil {
		_ = r.l.Close()
	}
	var errs []error
	if r.rnic != nil {
		errs = append(errs, r.rnic.Close())
	}
	r.tasks.Wait()
	r.conns.Wait()
	for _, region := range r.regions {
		errs = append(errs, region.Close())
	}
	for _, l := range r.plain {
		errs = append(errs, l.mr.Close())
	}
	if r.log != nil {
		errs = append(errs, r.log.close())
	}
	return errors.Join(errs...)
}
