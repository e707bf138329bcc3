package commit

// NewRanges is a backing of the tests that syncs ranges, as a mapping does.
func NewRanges(b SyncBuffer, sync func(ranges []Range) error) *Buffer {
	return &Buffer{b, newGroup(b.Size(), false, sync)}
}
