package main

import (
	"crypto/rand"
	"fmt"
	"time"

	"github.com/goiwarp/iwarp/cm"
)

const group = "mesh"

// nameOf returns the name of a process, as a client and as a server.
func nameOf(process int) (name [16]byte) {
	copy(name[:], fmt.Sprintf("mesh process %03d", process))
	return name
}

// A generation holds the master keys of all processes. Only the program that starts them has it.
type generation struct {
	id      uint64
	masters [][]byte
}

func newGeneration(id uint64, processes int) *generation {
	g := &generation{id: id}
	for range processes {
		master := make([]byte, 32)
		_, _ = rand.Read(master) // never fails
		g.masters = append(g.masters, master)
	}
	return g
}

// keys holds the keys that one process has of a generation.
type keys struct {
	ID      uint64
	Master  []byte   // as a server: the keys of its clients are derived from it
	Clients [][]byte // as a client of each server, by number; nil for itself
}

func (g *generation) of(process int) *keys {
	k := &keys{ID: g.id, Master: g.masters[process], Clients: make([][]byte, len(g.masters))}
	for server, master := range g.masters {
		if server != process {
			k.Clients[server] = cm.ClientKey(master, g.id, nameOf(process))
		}
	}
	return k
}

// server returns the entry in the ring of a server. If notAfter is zero, the key is not retired.
func (k *keys) server(notAfter time.Time) cm.Key {
	return cm.Key{ID: k.ID, Secret: k.Master, Derive: true, Group: group, NotAfter: notAfter}
}

// client returns the entry in the ring of a client of that server.
func (k *keys) client(server int) cm.Key {
	return cm.Key{ID: k.ID, Secret: k.Clients[server], Group: group, Primary: true}
}
