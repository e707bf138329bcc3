package capsule

import "encoding/binary"

// BroadcastNSID means all namespaces.
const BroadcastNSID = 0xFFFFFFFF

// MaxNamespaces is how many namespaces fit a list.
const MaxNamespaces = 1024

// PutNamespaceList writes a list (CNS 2) to a page of 4096 octets: of the ascending ids, those above after, as many as
// fit, and then zeros.
func PutNamespaceList(page []byte, ids []uint32, after uint32) {
	page = page[:PageSize]
	clear(page)
	n := 0
	for _, id := range ids {
		if id > after && n < MaxNamespaces {
			binary.LittleEndian.PutUint32(page[4*n:], id)
			n++
		}
	}
}

// ParseNamespaceList appends the ids of a list to dst: those of a page of 4096 octets up to the first zero. Ids that
// do not ascend from after on, and those that no namespace can have, are an error.
func ParseNamespaceList(dst []uint32, page []byte, after uint32) ([]uint32, error) {
	if len(page) < PageSize {
		return dst, malformed("a namespace list of %d octets", len(page))
	}
	for i := range MaxNamespaces {
		id := binary.LittleEndian.Uint32(page[4*i:])
		if id == 0 {
			break
		}
		if id <= after {
			return dst, malformed("namespace %d behind %d in a list", id, after)
		}
		if id >= BroadcastNSID-1 {
			return dst, malformed("namespace %#x in a list", id)
		}
		dst, after = append(dst, id), id
	}
	return dst, nil
}

// PutChangedNamespaces writes the log page LogChangedNamespaces (Base 2.0, 5.16.1.5) to a page of 4096 octets: the
// ascending ids. If they do not all fit, the page says that any namespace may have changed.
func PutChangedNamespaces(page []byte, ids []uint32) {
	if len(ids) > MaxNamespaces {
		page = page[:PageSize]
		clear(page)
		binary.LittleEndian.PutUint32(page, BroadcastNSID)
		return
	}
	PutNamespaceList(page, ids, 0)
}

// ParseChangedNamespaces appends the ids of the log page to dst. all reports that any namespace may have changed;
// then there are no ids. Otherwise it works like ParseNamespaceList.
func ParseChangedNamespaces(dst []uint32, page []byte) (ids []uint32, all bool, err error) {
	if len(page) >= PageSize && binary.LittleEndian.Uint32(page) == BroadcastNSID {
		return dst, true, nil
	}
	ids, err = ParseNamespaceList(dst, page, 0)
	return ids, false, err
}
