package counters

// SRQ counts the receives of an SRQ.
type SRQ struct {
	Posted uint64 // receives posted so far
	Taken  uint64 // receives taken by messages so far
	Free   int    // receives that wait for a message now
	Depth  int    // how many can wait, which does not change: see iwarp.PD.CreateSRQ
}

// CQ counts the completions of a CQ.
type CQ struct {
	Waiting int // completions that have not been polled now
	Depth   int // how many it can hold, now: see iwarp.CQ.Resize
}
