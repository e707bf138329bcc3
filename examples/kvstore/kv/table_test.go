package kv

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// look does a Lookup in the memory of a table.
func (t *table) look(key []byte) (v Verdict, value string, reads int) {
	var l Lookup
	v = ReadMore
	off, n := l.Begin(t.shape, key)
	for v == ReadMore {
		reads++
		b := make([]byte, n)
		if _, err := t.memory.ReadAt(b, int64(off)); err != nil {
			return Stale, "", reads
		}
		v, off, n = l.Next(b)
	}
	if v == Found {
		value = string(l.Value())
	}
	return v, value, reads
}

// store stores a value as a primary does.
func (t *table) store(version uint64, key, value string) error {
	c := change{version: version, tenant: t.id, key: []byte(key), value: []byte(value)}
	it, block, err := t.reserve(c.key, storedLen(len(key), len(value)))
	if err != nil {
		return err
	}
	c.entry, c.block = it.entry, block
	t.begin(it)
	t.finish(it, &c)
	return nil
}

func (t *table) remove(version uint64, key string) {
	if it := t.items[key]; it != nil {
		t.begin(it)
		t.finish(it, &change{deletes: true, version: version, entry: it.entry, key: []byte(key)})
	}
}

// TestTableIsAMap: for every order of changes. A second table that only gets the changes has the same memory in the end.
func TestTableIsAMap(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		shape := Shape{Buckets: 4, Values: maxStored}
		a, err := newTable("a", shape)
		require.NoError(rt, err)
		b, err := newTable("a", shape)
		require.NoError(rt, err)
		model := make(map[string]string)
		for version := range uint64(rapid.IntRange(1, 80).Draw(rt, "changes")) {
			c := change{version: version + 1, tenant: a.id, key: []byte(keyOf(rapid.IntRange(0, 19).Draw(rt, "key")))}
			key := string(c.key)
			if rapid.IntRange(0, 2).Draw(rt, "what") > 0 {
				c.value = make([]byte, rapid.SampledFrom([]int{0, 10, 100, 5000, 20_000}).Draw(rt, "length"))
				for i := range c.value {
					c.value[i] = byte(version)
				}
				if err := a.store(c.version, key, string(c.value)); err != nil {
					require.ErrorIs(rt, err, ErrFull)
					continue
				}
				c.block = a.items[key].block
				model[key] = string(c.value)
			} else {
				if a.items[key] == nil {
					continue
				}
				c.deletes = true
			}
			c.entry = a.items[key].entry
			if c.deletes {
				a.remove(c.version, key)
				delete(model, key)
			}
			require.NoError(rt, b.apply(&c))
			require.NoError(rt, b.apply(&c), "once more it does nothing")
		}
		for i := range 20 {
			for _, table := range []*table{a, b} {
				v, value, reads := table.look([]byte(keyOf(i)))
				want, ok := model[keyOf(i)]
				require.Equal(rt, ok, v == Found, "%q: %v", keyOf(i), v)
				require.Equal(rt, want, value)
				require.LessOrEqual(rt, reads, maxProbes+maxProbes*bucketEntries)
			}
		}
		require.Equal(rt, len(model), len(a.items))
	})
}

// TestIndexIsFull: it is full when all buckets of a key are, although other keys still have room.
func TestIndexIsFull(t *testing.T) {
	table, err := newTable("a", Shape{Buckets: 2, Values: maxStored})
	require.NoError(t, err)
	var keys []string
	for i := 0; ; i++ {
		if err = table.store(uint64(i+1), keyOf(i), "v"); err != nil {
			break
		}
		keys = append(keys, keyOf(i))
	}
	require.ErrorIs(t, err, ErrFull)
	require.ErrorContains(t, err, "more buckets")
	require.Len(t, keys, 2*bucketEntries, "both buckets are full")
	require.NoError(t, table.store(100, keys[0], "another value"))
	table.remove(101, keys[1])
	require.NoError(t, table.store(102, "new", "v"))
	for _, k := range append(keys[2:], "new") {
		v, value, _ := table.look([]byte(k))
		require.Equal(t, Found, v)
		require.Equal(t, "v", value)
	}
}

// TestValuesAreFull: an old value stays until the new one has a block.
func TestValuesAreFull(t *testing.T) {
	table, err := newTable("a", Shape{Buckets: 16, Values: maxStored})
	require.NoError(t, err)
	half := string(make([]byte, maxStored/2-valueHead-10))
	require.NoError(t, table.store(1, "a", half))
	require.NoError(t, table.store(2, "b", half))
	for _, key := range []string{"a", "c"} {
		err := table.store(3, key, "x")
		require.ErrorIs(t, err, errValuesFull)
	}
	v, _, _ := table.look([]byte("c"))
	require.Equal(t, Absent, v)
	require.Len(t, table.items, 2, "a key without a value takes no entry")
	table.remove(4, "a")
	require.NoError(t, table.store(5, "c", "x"))
}

// TestBlocks: allocated blocks do not overlap, and freed blocks are merged again.
func TestBlocks(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		const octets = 4 * maxStored
		b := newBlocks(octets)
		taken := make(map[uint32]int) // order by number
		used := make([]bool, octets/blockUnit)
		mark := func(at uint32, order int, to bool) {
			for i := at; i < at+1<<order; i++ {
				require.NotEqual(rt, to, used[i], "unit %d", i)
				used[i] = to
			}
		}
		for range rapid.IntRange(1, 100).Draw(rt, "steps") {
			order := rapid.IntRange(0, maxOrder).Draw(rt, "order")
			switch rapid.IntRange(0, 2).Draw(rt, "what") {
			case 0:
				if at, ok := b.alloc(order); ok {
					mark(at, order, true)
					taken[at] = order
				}
			case 1:
				at := uint32(rapid.IntRange(0, len(used)).Draw(rt, "block"))
				if b.take(at, order) {
					mark(at, order, true)
					taken[at] = order
				}
			default:
				for at, order := range taken {
					mark(at, order, false)
					b.give(at, order)
					delete(taken, at)
					break
				}
			}
		}
		for at, order := range taken {
			b.give(at, order)
		}
		for range octets / maxStored {
			_, ok := b.alloc(maxOrder)
			require.True(rt, ok, "all of it is free")
		}
	})
}

// TestBlocksOfABackup: it allocates blocks only by their numbers, as long as it lives.
func TestBlocksOfABackup(t *testing.T) {
	b := newBlocks(8 * maxStored)
	for i := range 100_000 {
		at := uint32(i % 8 << maxOrder)
		require.True(t, b.take(at, i%maxOrder))
		b.give(at, i%maxOrder)
	}
	listed := 0
	for _, free := range b.free {
		listed += len(free)
	}
	require.Less(t, listed, 5000)
	for range 8 {
		_, ok := b.alloc(maxOrder)
		require.True(t, ok, "all are free")
	}
}

// TestDamageIsFound: a change of any octet of a stored value, of its entry, or of a change record is detected.
func TestDamageIsFound(t *testing.T) {
	table, err := newTable("a", Shape{Buckets: 1, Values: maxStored})
	require.NoError(t, err)
	require.NoError(t, table.store(7, "key", "value"))
	it := table.items["key"]
	at := table.shape.blockAt(it.block)
	table.memory.Update(func(b []byte) {
		for i := range uint64(it.stored) {
			if i == 4 {
				continue // whether it is the current one
			}
			b[at+i] ^= 4
			e := entryOf(b[uint64(it.entry)*entryLen:])
			value, other, ok := valueOf(b[at:at+uint64(it.stored)], e, []byte("key"))
			require.False(t, ok, "octet %d: %q, %t", i, value, other)
			b[at+i] ^= 4
		}
	})
	for i := range entryLen {
		if i == 1 {
			continue // whether the bucket overflows
		}
		flip := func(b []byte) { b[int(it.entry)*entryLen+i] ^= 4 }
		table.memory.Update(flip)
		v, _, _ := table.look([]byte("key"))
		require.NotEqual(t, Found, v, "octet %d of the entry", i)
		table.memory.Update(flip)
	}
	v, value, _ := table.look([]byte("key"))
	require.Equal(t, Found, v)
	require.Equal(t, "value", value)

	c := change{version: 1, tenant: 2, entry: 3, block: 4, key: []byte("key"), value: []byte("value")}
	b := c.append(nil, 9)
	var got change
	n, _, err := got.parse(b, 9)
	require.NoError(t, err)
	require.Equal(t, len(b), n)
	require.Equal(t, c, got)
	_, _, err = got.parse(b, 10)
	require.Error(t, err, "another generation")
	for i := range b {
		b[i] ^= 4
		_, _, err := got.parse(b, 9)
		require.Error(t, err, "octet %d", i)
		b[i] ^= 4
		_, need, err := got.parse(b[:i], 9)
		require.Error(t, err)
		require.Greater(t, need, i)
	}
}

// TestChangeOfALongValue: it is no change, even if an int has 32 bits.
func TestChangeOfALongValue(t *testing.T) {
	c := change{version: 1, tenant: 2, key: []byte("key")}
	b := append(c.append(nil, 9), make([]byte, maxChange)...)
	for _, length := range []uint32{MaxValue + 1, 1 << 31, 1<<32 - changeHead, 1<<32 - 1} {
		binary.LittleEndian.PutUint32(b[12:], length)
		_, need, err := new(change).parse(b, 9)
		require.ErrorIs(t, err, errNoChange)
		require.Zero(t, need, "length %#x", length)
	}
}

// TestOtherConfiguration: a log with impossible changes is refused, and the error says why.
func TestOtherConfiguration(t *testing.T) {
	table, err := newTable("a", Shape{Buckets: 1, Values: maxStored})
	require.NoError(t, err)
	require.NoError(t, table.apply(&change{version: 1, entry: 1, key: []byte("a")}))
	for why, c := range map[string]change{
		"no such entry":  {entry: 4, key: []byte("b")},
		"another key":    {entry: 1, key: []byte("b")},
		"another entry":  {entry: 2, key: []byte("a")},
		"is not free":    {entry: 2, key: []byte("b"), block: 0},
		"is not  free":   {entry: 2, key: []byte("b"), block: maxStored / blockUnit},
		"is not   free ": {entry: 2, key: []byte("b"), block: 1, value: make([]byte, 100)},
	} {
		c.version = 2
		err := table.apply(&c)
		require.ErrorContains(t, err, "configuration", "%s", why)
	}
	table, err = newTable("a", smallShape)
	require.NoError(t, err)
	for i := range smallShape.Buckets {
		c := change{version: 1, entry: i * bucketEntries, key: []byte("a"), deletes: true}
		if (i-smallShape.home(hashOf(c.key)))%smallShape.Buckets < maxProbes {
			require.NoError(t, table.apply(&c), "bucket %d", i)
		} else {
			require.ErrorContains(t, table.apply(&c), "cannot have this entry", "bucket %d", i)
		}
	}
	for _, s := range []Shape{{}, {3, maxStored}, {4, 0}, {4, 100}, {1 << 29, maxStored}, {4, 1 << 40}} {
		_, err := newTable("a", s)
		require.Error(t, err, "%+v", s)
	}
	for _, name := range []string{"", "(a", "seventeen octets!"} {
		_, err := newTable(name, smallShape)
		require.Error(t, err, "%q", name)
	}
}

func FuzzLookup(f *testing.F) {
	f.Add([]byte("key"), make([]byte, 200))
	f.Fuzz(func(t *testing.T, key, memory []byte) {
		shape := Shape{Buckets: 4, Values: maxStored}
		var l Lookup
		v := ReadMore
		off, n := l.Begin(shape, key)
		for reads := 0; v == ReadMore; reads++ {
			require.Less(t, reads, maxProbes*(1+bucketEntries), "the number of reads is bounded")
			require.LessOrEqual(t, off+uint64(n), shape.size())
			b := make([]byte, n)
			if len(memory) > 0 {
				for i := range b {
					b[i] = memory[(int(off)+i)%len(memory)]
				}
			}
			v, off, n = l.Next(b)
		}
	})
}

func FuzzRequest(f *testing.F) {
	q := request{number: 7, key: []byte("key"), value: []byte("value")}
	b := make([]byte, maxRequest)
	f.Add(b[:q.put(b)])
	f.Fuzz(func(t *testing.T, b []byte) {
		var q request
		if q.parse(b) != nil {
			return
		}
		again := make([]byte, maxRequest)
		var q2 request
		require.NoError(t, q2.parse(again[:q.put(again)]))
		require.Equal(t, q, q2)
	})
}

func TestStatuses(t *testing.T) {
	for s := statusDone; s <= statusFailed; s++ {
		require.Equal(t, s, statusOf(s.err()), "%v", s.err())
	}
	require.ErrorIs(t, status(200).err(), ErrUncertain)
	require.Equal(t, statusFailed, statusOf(fmt.Errorf("another")))
	_, _, err := parseAnswer(make([]byte, 3))
	require.Error(t, err)
}
