package metrics

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/cm"
	"github.com/goiwarp/iwarp/internal/equal"
	"github.com/goiwarp/iwarp/rma"
	"github.com/goiwarp/iwarp/solicit"
)

// A Collector reads the counts of RNICs, and of objects that were added to it, whenever it is scraped. It implements
// prometheus.Collector. All methods may be called from any goroutine, at any time.
type Collector struct {
	rnics []*iwarp.RNIC

	mu    sync.Mutex
	added map[key]func(o *out) // reports the metrics of each object
	names map[any][]key        // the keys of each object whose type is comparable
}

// A key is the kind and the name under which an object was added.
type key struct{ kind, name string }

// NewCollector returns a Collector of RNICs. They may be closed while it is registered.
func NewCollector(rnics ...*iwarp.RNIC) *Collector {
	return &Collector{rnics: rnics, added: make(map[key]func(o *out)), names: make(map[any][]key)}
}

// Describe implements prometheus.Collector.
func (c *Collector) Describe(to chan<- *prometheus.Desc) {
	for _, m := range all {
		to <- m.desc
	}
}

// Collect implements prometheus.Collector.
func (c *Collector) Collect(to chan<- prometheus.Metric) {
	o := &out{to}
	for i, r := range c.rnics {
		o.rnic(strconv.Itoa(i), r.Stats())
	}
	c.mu.Lock()
	added := slices.Collect(maps.Values(c.added))
	c.mu.Unlock()
	for _, collect := range added {
		collect(o)
	}
}

// add adds an object, unless one of its kind has the name. collect is called with the name as a valid label: labels are UTF-8, but
// names, of files for example, need not be.
func (c *Collector) add(kind, name string, is any, collect func(o *out, name string)) {
	name = strings.ToValidUTF8(name, "\uFFFD")
	c.mu.Lock()
	defer c.mu.Unlock()
	k := key{kind, name}
	if _, there := c.added[k]; there {
		return // two would be the same metric
	}
	c.added[k] = func(o *out) { collect(o, name) }
	if equal.Values(is, is) {
		c.names[is] = append(c.names[is], k)
	}
}

// Remove removes an object that was added, under all of its names. Other objects may then have these names. An object that was not
// added is ignored. An object of a type that cannot be compared is not removed. A scrape that has begun may report the object once more.
//
// A program that replaces an object, such as an rma.Client whose connection has ended, removes the old one before it adds the new one.
// The counters of the name then restart at 0, which Prometheus treats as a restart of the program.
func (c *Collector) Remove(object any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !equal.Values(object, object) {
		return
	}
	for _, k := range c.names[object] {
		delete(c.added, k)
	}
	delete(c.names, object)
}

// AddAuth adds an Authenticator of package cm. As for all objects, if one of the same kind already has the name, the new one is
// not added. Octets of a name that are not UTF-8 become U+FFFD.
func (c *Collector) AddAuth(name string, a *cm.Auth) {
	c.add("auth", name, a, func(o *out, name string) { o.auth(name, a.Stats()) })
}

// AddServer adds an rma.Server.
func (c *Collector) AddServer(name string, s *rma.Server) {
	c.add("server", name, s, func(o *out, name string) { o.server(name, s.Stats()) })
}

// AddClient adds an rma.Client. A Client has one connection: see Remove for its successor.
func (c *Collector) AddClient(name string, cl *rma.Client) {
	c.add("client", name, cl, func(o *out, name string) { o.client(name, cl.Stats()) })
}

// AddCQ adds a completion queue that QPs share. It may be closed meanwhile, and stays added until it is removed.
func (c *Collector) AddCQ(name string, cq *iwarp.CQ) {
	c.add("cq", name, cq, func(o *out, name string) { o.cq(name, cq.Stats()) })
}

// AddSRQ adds a shared receive queue. It may be closed meanwhile, and stays added until it is removed.
func (c *Collector) AddSRQ(name string, s *iwarp.SRQ) {
	c.add("srq", name, s, func(o *out, name string) { o.srq(name, s.Stats()) })
}

// AddSolicitor adds a window: an *iwarp.Solicitor, or an *rma.Solicitor.
func (c *Collector) AddSolicitor(name string, s interface{ Stats() solicit.Stats }) {
	c.add("solicitor", name, s, func(o *out, name string) { o.solicitor(name, s.Stats()) })
}

// AddBacking adds a durable backing of package commit.
func (c *Collector) AddBacking(name string, b interface{ Syncs() uint64 }) {
	c.add("backing", name, b, func(o *out, name string) { o.count(syncs, b.Syncs(), name) })
}
