package main

import (
	"io/fs"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/goiwarp/iwarp/internal/lru"
)

// placesTime is how long the places of a directory are kept while it is not listed: a client that reads it piece by piece requests the
// next piece within that time.
const placesTime = time.Minute

// places holds the places of names in the listings of the directories that were read last. The cookie of an entry is its place. If the
// client names no verifier, go-nfs continues after a cookie in a new listing. Linux does so whenever it has seen the directory change, so
// a name with another place in the new listing would be read twice, or not at all.
type places struct {
	mu    sync.Mutex
	dirs  *lru.Map[string, *placed] // keptListings at most
	names int                       // of all directories: keptEntries at most, or those of the last directory
}

// placed holds the places of the names of one directory.
type placed struct {
	of         map[string]int
	size       int // the number of places, including free ones
	made, used time.Time
}

// An atPlace is an entry of a listing that has a place. go-nfs sorts entries by name before VerifierFor puts them there.
type atPlace struct {
	fs.FileInfo
	name string
	at   int
}

func (a *atPlace) Name() string { return a.name }

// placeOf returns the place of an entry.
func placeOf(info fs.FileInfo) int {
	if a, ok := info.(*atPlace); ok {
		return a.at
	}
	return 0
}

// put gives each entry of a directory its place: its previous place if it had one, and otherwise the first free one. A place whose name is
// gone is filled with the directory itself under the name ".", which programs skip.
func (p *places) put(dir string, contents []fs.FileInfo, self fs.FileInfo, now time.Time) []fs.FileInfo {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dirs == nil {
		p.dirs = lru.New[string, *placed](keptListings)
	}
	old, ok := p.dirs.Get(dir)
	if !ok || now.Sub(old.used) > placesTime {
		old = &placed{made: now}
	}
	next := old.next(contents)
	if next.size > 2*len(contents) && now.Sub(old.made) > placesTime {
		next = (&placed{made: now}).next(contents) // otherwise a growing part of a listing would be removed names
	}
	next.used = now
	p.keep(dir, next)
	all := make([]fs.FileInfo, next.size)
	for _, info := range contents {
		at := next.of[info.Name()]
		all[at] = &atPlace{info, info.Name(), at}
	}
	for at := range all {
		if all[at] == nil {
			all[at] = &atPlace{self, ".", at}
		}
	}
	return all
}

// next returns the places of the current entries of the directory.
func (p *placed) next(contents []fs.FileInfo) *placed {
	next := &placed{of: make(map[string]int, len(contents)), made: p.made}
	taken := make([]bool, p.size, p.size+len(contents))
	var added []string
	for _, info := range contents {
		at, ok := p.of[info.Name()]
		if !ok {
			added = append(added, info.Name())
			continue
		}
		next.of[info.Name()], taken[at] = at, true
	}
	slices.SortFunc(added, strings.Compare)
	at := 0
	for _, name := range added {
		for at < len(taken) && taken[at] {
			at++
		}
		if at == len(taken) {
			taken = append(taken, false)
		}
		next.of[name], taken[at] = at, true
	}
	for next.size = len(taken); next.size > 0 && !taken[next.size-1]; {
		next.size--
	}
	return next
}

// keep keeps the places of a directory. If there are too many, it forgets those that were used least recently.
func (p *places) keep(dir string, next *placed) {
	if old, ok := p.dirs.Get(dir); ok {
		p.forget(dir, old)
	}
	for p.dirs.Len() > 0 && (p.dirs.Full() || p.names+len(next.of) > keptEntries) {
		p.forget(p.dirs.Oldest())
	}
	p.dirs.Put(dir, next)
	p.names += len(next.of)
}

func (p *places) forget(dir string, old *placed) {
	p.dirs.Delete(dir)
	p.names -= len(old.of)
}
