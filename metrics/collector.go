package metrics

import (
	"strconv"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/cm"
	"github.com/goiwarp/iwarp/rma"
	"github.com/goiwarp/iwarp/solicit"
)

// A Collector asks RNICs, and what was added to it, whenever it is scraped. It implements prometheus.Collector. All methods
// may be called from any goroutine, at any time.
type Collector struct {
	rnics []*iwarp.RNIC

	mu    sync.Mutex
	added []func(o *out) // one for each object that has a name
	names map[string]struct{}
}

// NewCollector returns a Collector of RNICs. They may be closed while it is registered.
func NewCollector(rnics ...*iwarp.RNIC) *Collector {
	return &Collector{rnics: rnics, names: make(map[string]struct{})}
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
	added := c.added[:len(c.added):len(c.added)]
	c.mu.Unlock()
	for _, collect := range added {
		collect(o)
	}
}

// add adds an object, unless one of its kind has the name. collect is given the name as a label: labels are UTF-8, and names, of
// files for example, need not be.
func (c *Collector) add(kind, name string, collect func(o *out, name string)) {
	name = strings.ToValidUTF8(name, "\uFFFD")
	c.mu.Lock()
	defer c.mu.Unlock()
	key := kind + " " + name
	if _, there := c.names[key]; there {
		return // two would be the same metric, and the scrape an error
	}
	c.names[key] = struct{}{}
	c.added = append(c.added, func(o *out) { collect(o, name) })
}

// AddAuth adds an Authenticator of package cm. Of several with one name the first counts, as for all that is added. What is no
// UTF-8 in a name becomes U+FFFD.
func (c *Collector) AddAuth(name string, a *cm.Auth) {
	c.add("auth", name, func(o *out, name string) { o.auth(name, a.Stats()) })
}

// AddServer adds an rma.Server.
func (c *Collector) AddServer(name string, s *rma.Server) {
	c.add("server", name, func(o *out, name string) { o.server(name, s.Stats()) })
}

// AddClient adds an rma.Client.
func (c *Collector) AddClient(name string, cl *rma.Client) {
	c.add("client", name, func(o *out, name string) { o.client(name, cl.Stats()) })
}

// AddCQ adds a completion queue that QPs share. It may be closed while it is there.
func (c *Collector) AddCQ(name string, cq *iwarp.CQ) {
	c.add("cq", name, func(o *out, name string) { o.cq(name, cq.Stats()) })
}

// AddSRQ adds a shared receive queue. It may be closed while it is there.
func (c *Collector) AddSRQ(name string, s *iwarp.SRQ) {
	c.add("srq", name, func(o *out, name string) { o.srq(name, s.Stats()) })
}

// AddSolicitor adds a window: an *iwarp.Solicitor, or an *rma.Solicitor.
func (c *Collector) AddSolicitor(name string, s interface{ Stats() solicit.Stats }) {
	c.add("solicitor", name, func(o *out, name string) { o.solicitor(name, s.Stats()) })
}

// AddBacking adds a durable backing of package commit.
func (c *Collector) AddBacking(name string, b interface{ Syncs() uint64 }) {
	c.add("backing", name, func(o *out, name string) { o.count(syncs, b.Syncs(), name) })
}
