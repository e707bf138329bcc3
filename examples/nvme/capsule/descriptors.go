package capsule

// Types of namespace identification descriptors (Base 2.0, 5.17.2.3).
const (
	descEUI64 = 1
	descNGUID = 2
	descUUID  = 3
	descCSI   = 4

	descriptorHeader = 4
)

// Descriptors is the data of Identify, CNS 3: the identifiers of a namespace. An identifier of zeros is none. Each
// descriptor is
//
//	0 type | 1 length | 2 reserved[2] | 4 value
//
// and a descriptor of length 0 ends them.
type Descriptors struct {
	UUID  [16]byte
	NGUID [16]byte
	EUI64 [8]byte
	CSI   uint8 // command set: 0, NVM
}

// Put writes the descriptors to a page of 4096 octets: UUID, NGUID and EUI64 if there is one, and always CSI.
func (d *Descriptors) Put(page []byte) {
	page = page[:PageSize]
	clear(page)
	at := 0
	put := func(kind byte, v []byte, always bool) {
		if !always && isZero(v) {
			return
		}
		page[at], page[at+1] = kind, byte(len(v))
		at += descriptorHeader
		at += copy(page[at:], v)
	}
	put(descUUID, d.UUID[:], false)
	put(descNGUID, d.NGUID[:], false)
	put(descEUI64, d.EUI64[:], false)
	put(descCSI, []byte{d.CSI}, true)
}

// ParseDescriptors reads the descriptors of a page of 4096 octets. It skips descriptors of unknown types. A descriptor
// that exceeds the page, does not have the length of its type, or occurs twice is an error.
func ParseDescriptors(page []byte) (*Descriptors, error) {
	if len(page) < PageSize {
		return nil, malformed("namespace descriptors of %d octets", len(page))
	}
	d := new(Descriptors)
	var seen [descCSI + 1]bool
	rest := page[:PageSize]
	for len(rest) >= descriptorHeader && rest[1] != 0 {
		kind, n := rest[0], int(rest[1])
		rest = rest[descriptorHeader:]
		if n > len(rest) {
			return nil, malformed("a namespace descriptor of %d octets, %d before the end", n, len(rest))
		}
		if size := descriptorSize(kind); size != 0 {
			if size != n {
				return nil, malformed("a namespace descriptor of type %d and %d octets", kind, n)
			}
			if seen[kind] {
				return nil, malformed("two namespace descriptors of type %d", kind)
			}
			seen[kind] = true
			d.set(kind, rest[:n])
		}
		rest = rest[n:]
	}
	return d, nil
}

// descriptorSize returns the length of the value of a type. 0: the type is not known.
func descriptorSize(kind byte) int {
	switch kind {
	case descEUI64:
		return 8
	case descNGUID, descUUID:
		return 16
	case descCSI:
		return 1
	}
	return 0
}

// set stores the value of a known type.
func (d *Descriptors) set(kind byte, v []byte) {
	switch kind {
	case descEUI64:
		copy(d.EUI64[:], v)
	case descNGUID:
		copy(d.NGUID[:], v)
	case descUUID:
		copy(d.UUID[:], v)
	case descCSI:
		d.CSI = v[0]
	}
}

func isZero(b []byte) bool {
	for _, v := range b {
		if v != 0 {
			return false
		}
	}
	return true
}
