package kv

// A Verdict is the result of a step of a Lookup.
type Verdict uint8

// The verdicts.
const (
	ReadMore Verdict = iota // read the named octets next
	Found                   // the octets contain the value: Lookup.Value
	Absent                  // there is no such key
	Busy                    // the key is being changed: ask the backup
	Stale                   // the value that the index named is no longer there: begin again
)

// A Lookup is one Get, without the reads: it says what to read, and is passed the octets. So it can be used
// with sealed and plain reads, and for one read or many at a time.
type Lookup struct {
	shape   Shape
	key     []byte
	hash    uint64
	bucket  uint32
	left    int // buckets that may follow
	entries [bucketEntries]entry
	count   int // of entries that may be those of the key
	reading int // which of the entries is being read; -1: the bucket is
	more    bool
	busy    bool
	located bool // the entry is a remembered one
	value   []byte
}

// Begin begins the Lookup of a key, and returns the first octets to read.
func (l *Lookup) Begin(shape Shape, key []byte) (off uint64, n int) {
	h := hashOf(key)
	*l = Lookup{shape: shape, key: key, hash: h, bucket: shape.home(h), left: shape.probes() - 1, reading: -1}
	return uint64(l.bucket) * bucketLen, bucketLen
}

// BeginAt begins with an entry that an earlier Lookup of the key has found: see Entry. If the value is no
// longer there, the Verdict is Stale.
func (l *Lookup) BeginAt(shape Shape, key []byte, e Entry) (off uint64, n int) {
	if shape.blockAt(e.entry.block)+uint64(e.entry.length) > shape.size() {
		return l.Begin(shape, key) // the entry is from another memory
	}
	*l = Lookup{shape: shape, key: key, reading: 0, count: 1, located: true}
	l.entries[0] = e.entry
	return shape.blockAt(e.entry.block), int(e.entry.length)
}

// An Entry is where a value was found.
type Entry struct{ entry entry }

// Entry returns where the value was found.
func (l *Lookup) Entry() Entry { return Entry{l.entries[l.reading]} }

// Next takes the octets that were read. They must not change until the next call, and until the value
// was used.
func (l *Lookup) Next(b []byte) (v Verdict, off uint64, n int) {
	if l.reading < 0 {
		l.takeBucket(b)
		return l.advance()
	}
	value, other, ok := valueOf(b, l.entries[l.reading], l.key)
	switch {
	case !ok, l.located && (other || !isCurrent(b)):
		return Stale, 0, 0
	case other:
		return l.advance()
	}
	l.value = value
	return Found, 0, 0
}

// Value returns the value that was found, a part of the octets passed to the last Next.
func (l *Lookup) Value() []byte { return l.value }

// takeBucket records the entries of a bucket that may belong to the key.
func (l *Lookup) takeBucket(b []byte) {
	l.count = 0
	l.more = overflows(b)
	for i := range bucketEntries {
		e := entryOf(b[i*entryLen:])
		if e.tag != tagOf(l.hash) {
			continue
		}
		switch e.state {
		case entryValue:
			l.entries[l.count] = e
			l.count++
		case entryBusy:
			l.busy = true
		}
	}
}

// advance continues with the next entry, or the next bucket.
func (l *Lookup) advance() (v Verdict, off uint64, n int) {
	if l.reading++; l.reading < l.count {
		e := &l.entries[l.reading]
		off = l.shape.blockAt(e.block)
		if e.length > maxStored || off+uint64(e.length) > l.shape.size() {
			return Stale, 0, 0
		}
		return ReadMore, off, int(e.length)
	}
	if l.more && l.left > 0 {
		l.left--
		l.bucket, l.reading = l.shape.next(l.bucket), -1
		return ReadMore, uint64(l.bucket) * bucketLen, bucketLen
	}
	if l.busy {
		return Busy, 0, 0
	}
	return Absent, 0, 0
}
