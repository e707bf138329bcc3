package transport

// A Prefaulter is a [Stream], or an [LLP], that can load the pages of a mapped file from disk
// before they are used.
type Prefaulter interface {
	// Prefault is called by the sending half with the payload that is written, or
	// appended, next. It returns when the pages are in memory, if that is possible. It
	// loads them in a system call that the scheduler knows of: if Go code faulted on a
	// page that is not in memory, it would occupy its processor, and delay every garbage
	// collection, until the disk has answered.
	Prefault(payload [][]byte)
}
