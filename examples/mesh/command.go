package main

// A command is a line for the standard input of a process: one JSON object. Keys are passed this
// way, because others can see the arguments of a process.
type command struct {
	Do string // the name in the table of obey

	Self, Size int    // start: the number of the process, and octets of a Write
	Addr       string // start: where to listen

	// Addrs are the addresses of the processes, by number. An empty one is not to be connected to.
	Addrs []string

	Keys  *keys  // start, accept
	Round uint32 // write, seen
	Peer  int    // gone
}

// A reply is what a process writes to its standard output for each command.
type reply struct {
	Err  string `json:",omitempty"`
	Addr string `json:",omitempty"` // start

	Setups, Attempts int // connect, stop: connections that were set up
	Rounds           int // stop: how often to each other process

	Seen   []int          `json:",omitempty"` // seen: how often the data of each process were right
	PerKey map[uint64]int `json:",omitempty"` // seen: connections that were accepted
}

// The rounds of Writes.
const (
	roundConnected uint32 = 1 + iota
	roundRotating
	roundRotated
	roundAway
	roundBack
)
