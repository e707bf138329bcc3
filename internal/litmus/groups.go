package main

// A group is a chapter of docs/ordering.md.
type group struct {
	title    string
	programs []program
}

var groups = []group{
	{"What a message guarantees", messages},
	{"Reads and fences", readPrograms},
	{"Several QPs", streamPrograms},
	{"Atomic operations", atomicPrograms},
	{"Commit", commitPrograms},
}
