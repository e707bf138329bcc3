package transport

// A Prefaulter is a [Stream], or an [LLP], that can bring octets into memory which may lie in
// a file that is mapped, and be on a disk still.
type Prefaulter interface {
	// Prefault is called by the sending half with what is written, or appended, next. It
	// returns when it is in memory, if it can be. Meanwhile the scheduler knows that the
	// goroutine waits: Go code that met a page which is not there would keep its processor,
	// and every collection, waiting for the disk.
	Prefault(payload [][]byte)
}
