package regionkey

import (
	"crypto/cipher"
	"encoding/binary"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A use is a pair of key and nonce: the number of the key, the usage, the counter.
type use uint64

const (
	useCounterBits = 36
	useUsageBits   = 2
)

// A ledger records each use of each key.
type ledger struct {
	mu   sync.Mutex
	keys map[string]uint64 // numbers of keys, by their octets
	uses []use
	odd  int // nonces without a known usage
}

// record notes a use. Any goroutine may call it.
func (l *ledger) record(key uint64, n []byte) {
	ctr := binary.BigEndian.Uint64(n[4:])
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(n) != 12 || n[0] < 1 || n[0] > 3 || n[1] != 0 || n[2] != 0 || n[3] != 0 || ctr >= 1<<useCounterBits {
		l.odd++
		return
	}
	l.uses = append(l.uses, use(key<<(useCounterBits+useUsageBits)|uint64(n[0])<<useCounterBits|ctr))
}

// repeats counts the pairs that occur more than once.
func (l *ledger) repeats() int {
	slices.Sort(l.uses)
	n := 0
	for i := 1; i < len(l.uses); i++ {
		if l.uses[i] == l.uses[i-1] {
			n++
		}
	}
	return n
}

// A recorder is an AEAD that records the uses of its key in the ledger.
type recorder struct {
	cipher.AEAD
	ledger *ledger
	key    uint64
}

func (r *recorder) Seal(dst, nonce, plain, aad []byte) []byte {
	r.ledger.record(r.key, nonce)
	return r.AEAD.Seal(dst, nonce, plain, aad)
}

// recorded returns an AEAD that records what it seals.
func (l *ledger) recorded(a cipher.AEAD, key []byte) cipher.AEAD {
	n, ok := l.keys[string(key)]
	if !ok {
		n = uint64(len(l.keys))
		l.keys[string(key)] = n
	}
	return &recorder{a, l, n}
}

const modelRegions = 3

// A party is one side of the model's connection: the server of its own regions, and the client of the
// other party's regions, which have the same IDs and, at the beginning, the same secrets.
type party struct {
	side     uint8
	rings    [modelRegions]*Ring
	saved    [modelRegions]*Ring // an earlier state of the process
	cache    *Cache
	ctl      Counter
	data     Counter
	control  *Control
	instance [16]byte
}

// A model is two parties whose connection is made again and again.
type model struct {
	t       *testing.T
	rnd     *rand.Rand
	now     time.Time
	ledger  ledger
	parties [2]*party
	secret  Key // of the connection
	conn    uint64
	opened  int
}

func newModel(t *testing.T, seed uint64) *model {
	m := &model{t: t, rnd: rand.New(rand.NewPCG(seed, 17)), now: epochStart, ledger: ledger{keys: make(map[string]uint64)}}
	for i := range m.parties {
		p := &party{side: Initiator + uint8(i), cache: NewCache(5)}
		for r := range p.rings {
			p.rings[r] = m.ring(uint64(r))
			p.saved[r] = m.ring(uint64(r))
		}
		m.parties[i] = p
	}
	m.reconnect()
	return m
}

// ring returns a new region, with the secret that it had the last time.
func (m *model) ring(id uint64) *Ring {
	r, err := NewRing(id, octets(1, 32))
	require.NoError(m.t, err)
	return r
}

// reconnect begins a connection with a new secret, and numbers from 0.
func (m *model) reconnect() {
	var s [32]byte
	for i := range s {
		s[i] = byte(m.rnd.Uint32())
	}
	x := exporterOf(s[:])
	var err error
	m.secret, err = BindingSecret(x)
	require.NoError(m.t, err)
	m.conn++
	for _, p := range m.parties {
		if m.rnd.IntN(2) == 0 {
			p.cache.DropConn(m.conn - 1)
		}
		p.ctl, p.data = Counter{}, Counter{}
		p.control, err = NewControl(x, p.side)
		require.NoError(m.t, err)
		k, err := x.export(labelControl, []byte{p.side})
		require.NoError(m.t, err)
		p.control.aead = m.ledger.recorded(p.control.aead, k[:])
	}
}

// derive derives the Sealer of an operation on a region of its owner.
func (m *model) derive(owner, client *party, region uint64, e Epoch, op OpType, dir uint8) (*Sealer, error) {
	k, err := owner.rings[region].Derive(m.now, e, [32]byte{client.side}, client.instance, op)
	if err != nil {
		return nil, err
	}
	b := Binding{m.secret, owner.side, dir, SuiteAES128}
	s, err := Traffic(&k, &b)
	require.NoError(m.t, err)
	key, err := b.trafficKey(&k)
	require.NoError(m.t, err)
	s.aead = m.ledger.recorded(s.aead, key)
	return s, nil
}

// sealer returns a Sealer of p, from its cache or a new one: each party derives its own.
func (m *model) sealer(p, owner, client *party, region uint64, e Epoch, op OpType, dir uint8) *Sealer {
	k := CacheKey{m.conn, region, e, op, owner.side, dir}
	if s := p.cache.Get(k); s != nil && m.rnd.IntN(8) > 0 {
		return s
	}
	s, err := m.derive(owner, client, region, e, op, dir)
	require.NoError(m.t, err)
	p.cache.Put(k, s)
	return s
}

func (m *model) next(c *Counter) uint64 {
	n, err := c.Next()
	require.NoError(m.t, err)
	return n
}

// send seals a message without a body of its own.
func (m *model) send(p *party) { p.control.Seal(nil, nil, m.next(&p.ctl), nil) }

// operate performs one operation: a request with a proof, data, and the messages around them.
func (m *model) operate() {
	owner, client := m.parties[0], m.parties[1]
	if m.rnd.IntN(2) == 0 {
		owner, client = client, owner
	}
	region, op := m.rnd.Uint64N(modelRegions), OpType(1+m.rnd.IntN(3))
	ring := owner.rings[region]
	e := ring.Expire(m.now)
	if m.rnd.IntN(2) == 0 {
		e = ring.Current()
	}
	ctr := m.next(&client.ctl)
	m.sealer(client, owner, client, region, e, op, client.side).Tag(nil, ctr, nil)
	client.control.Seal(nil, nil, ctr, nil)
	if op != Read {
		m.send(owner) // the answer, or the request for the data
	}
	if op == Manage {
		return
	}
	from, to := owner, client
	if op == Write {
		from, to = client, owner
	}
	m.transfer(from, m.sealer(from, owner, client, region, e, op, from.side), m.sealer(to, owner, client, region, e, op, from.side))
	m.send(from)
}

// transfer seals data, sometimes in several goroutines at once, and opens it on the other side.
func (m *model) transfer(from *party, s, peer *Sealer) {
	workers, each := 1, 1
	if m.rnd.IntN(20) == 0 {
		workers, each = 1+m.rnd.IntN(4), 1+m.rnd.IntN(200)
	}
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			plain, blob := make([]byte, 8), make([]byte, 0, 8+TagSize)
			for range each {
				ctr, err := from.data.Next()
				if err != nil {
					panic(err)
				}
				binary.BigEndian.PutUint64(plain, ctr)
				blob = s.Seal(blob[:0], plain, ctr, nil)
				got, err := peer.OpenInPlace(blob, ctr, nil)
				if err != nil || binary.BigEndian.Uint64(got) != ctr {
					panic("what one side seals the other one cannot open")
				}
			}
		})
	}
	all.Wait()
	m.opened += workers * each
}

// step is one event.
func (m *model) step() {
	p, region := m.parties[m.rnd.IntN(2)], m.rnd.Uint64N(modelRegions)
	m.now = m.now.Add(time.Duration(m.rnd.Int64N(int64(time.Second))))
	switch n := m.rnd.IntN(1000); {
	case n < 5:
		m.reconnect()
	case n < 7: // the process restarts with an earlier state
		for i, r := range p.saved {
			p.rings[i] = new(*r)
		}
		m.reconnect()
	case n < 8:
		for i, r := range p.rings {
			p.saved[i] = new(*r)
		}
	case n < 40:
		secret := octets(1, 32) // which it had before
		if m.rnd.IntN(2) == 0 {
			secret = octets(byte(m.rnd.IntN(256)), 32)
		}
		_, err := p.rings[region].Rekey(m.now, secret, time.Duration(m.rnd.IntN(3))*10*time.Second)
		require.NoError(m.t, err)
		p.cache.DropBefore(region, p.rings[region].Expire(m.now))
	case n < 45: // the region is closed, and registered again
		p.rings[region] = m.ring(region)
		for _, p := range m.parties {
			p.cache.DropRegion(region)
		}
	default:
		m.operate()
	}
}

// TestKEY_7_8_10_NoKeyIsUsedTwiceWithANonce lets two parties connect, change keys, drop and derive
// them again, restart, and seal in parallel. IWARP_KEY_SEALS sets the number of uses of keys.
func TestKEY_7_8_10_NoKeyIsUsedTwiceWithANonce(t *testing.T) {
	seals := 50_000
	if s := os.Getenv("IWARP_KEY_SEALS"); s != "" {
		n, err := strconv.ParseFloat(s, 64)
		require.NoError(t, err, "IWARP_KEY_SEALS")
		seals = int(n)
	}
	m := newModel(t, 1)
	for len(m.ledger.uses) < seals {
		m.step()
	}
	require.Zero(t, m.ledger.odd)
	require.Zero(t, m.ledger.repeats())
	require.Less(t, len(m.ledger.keys), 1<<(64-useCounterBits-useUsageBits))
	t.Logf("%d uses of %d keys on %d connections, %d blobs opened", len(m.ledger.uses), len(m.ledger.keys), m.conn, m.opened)
}

// TestKEY_7_TheModelNoticesRepeats: otherwise it would prove nothing.
func TestKEY_7_TheModelNoticesRepeats(t *testing.T) {
	for name, slip := range map[string]func(*model){
		"data is counted anew":           func(m *model) { m.parties[0].data.next.Store(0) },
		"messages are counted anew":      func(m *model) { m.parties[1].ctl.next.Store(0) },
		"a connection has an old secret": func(m *model) { m.secret = Key{} },
	} {
		m := newModel(t, 2)
		for range 3000 {
			m.step()
			slip(m)
		}
		require.NotZero(t, m.ledger.repeats(), name)
	}
}

func TestKEY_7_CounterGivesEachNumberOnce(t *testing.T) {
	const workers, each = 4, 5000
	var c Counter
	var given [workers][]uint64
	var all sync.WaitGroup
	for w := range workers {
		all.Go(func() {
			for range each {
				n, err := c.Next()
				if err != nil {
					panic(err)
				}
				given[w] = append(given[w], n)
			}
		})
	}
	all.Wait()
	numbers := slices.Concat(given[:]...)
	slices.Sort(numbers)
	for want, n := range numbers {
		require.EqualValues(t, want, n)
	}
}

// TestKEY_8_CountersAreOfTheConnection: keys that are derived again continue the numbers.
func TestKEY_8_CountersAreOfTheConnection(t *testing.T) {
	m := newModel(t, 3)
	owner, client := m.parties[1], m.parties[0]
	for want := range uint64(20) {
		region, op := want%modelRegions, Read+OpType(want%2)
		s, err := m.derive(owner, client, region, 1, op, owner.side)
		require.NoError(t, err)
		n := m.next(&owner.data)
		require.Equal(t, want, n, "whatever the key")
		s.Seal(nil, nil, n, nil)
	}
	require.Len(t, m.ledger.uses, 20)
	require.Len(t, m.ledger.keys, 1+1+2*modelRegions)
	require.Zero(t, m.ledger.repeats())
}
