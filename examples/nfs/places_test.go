package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	nfsc "github.com/willscott/go-nfs-client/nfs"
)

// TestEachNameIsListedOnceWhileOthersComeAndGo: when Linux has seen the directory change, it continues after the cookie
// that it has reached, without a verifier.
func TestEachNameIsListedOnceWhileOthersComeAndGo(t *testing.T) {
	dir := t.TempDir()
	const stays = 60
	for i := range stays {
		write(t, nil, dir, "stays"+strconv.Itoa(100+i))
	}
	for i := range 10 {
		write(t, nil, dir, "goes"+strconv.Itoa(i)) // ahead of all of them
	}
	s := serves(t, dir, false)
	v := mounts(t, s.streams[1].Addr().String())
	_, root, err := v.Lookup(".")
	require.NoError(t, err)
	seen := make(map[string]int)
	var behind uint64
	for round, eof := 0, false; !eof; round++ {
		var entries []nfsc.EntryPlus
		entries, _, eof = piece(t, v, root, behind, 0)
		require.NotEmpty(t, entries)
		for _, e := range entries {
			seen[e.FileName]++
		}
		behind = entries[len(entries)-1].Cookie
		if round < 5 {
			require.NoError(t, os.Remove(filepath.Join(dir, "goes"+strconv.Itoa(2*round))))
			require.NoError(t, os.Remove(filepath.Join(dir, "goes"+strconv.Itoa(2*round+1))))
			write(t, nil, dir, "comes"+strconv.Itoa(round))
		}
	}
	for i := range stays {
		require.Equal(t, 1, seen["stays"+strconv.Itoa(100+i)], "how often name %d was listed", i)
	}
}

// putNames puts the names in their places, and returns the listed names.
func putNames(t *testing.T, p *places, now time.Time, names ...string) (listed []string) {
	t.Helper()
	dir := t.TempDir()
	for _, name := range names {
		write(t, nil, dir, name)
	}
	d, err := os.Open(dir)
	require.NoError(t, err)
	defer func() { require.NoError(t, d.Close()) }()
	self, err := d.Stat()
	require.NoError(t, err)
	contents, err := d.Readdir(-1)
	require.NoError(t, err)
	for i, info := range p.put("dir", contents, self, now) {
		require.Equal(t, i, placeOf(info))
		require.Equal(t, info.Name() == ".", info.IsDir())
		listed = append(listed, info.Name())
	}
	return listed
}

// TestPlaces: they are kept while a directory is listed, are reused for other names, and do not grow in number.
func TestPlaces(t *testing.T) {
	var p places
	now := time.Unix(1e9, 0)
	require.Equal(t, []string{"a", "b", "c", "d"}, putNames(t, &p, now, "a", "b", "c", "d"))
	require.Equal(t, []string{".", "b", ".", "d"}, putNames(t, &p, now, "b", "d"))
	require.Equal(t, []string{"0", "b", "z", "d", "zz"}, putNames(t, &p, now, "b", "d", "zz", "z", "0"))
	require.Equal(t, []string{"0", "b"}, putNames(t, &p, now, "b", "0"), "free places at the end are none")
	require.Equal(t, []string{".", "b"}, putNames(t, &p, now, "b"))
	require.Equal(t, []string{"a", "b", "c"}, putNames(t, &p, now, "a", "b", "c"))
	require.Equal(t, []string{".", ".", "c"}, putNames(t, &p, now.Add(placesTime), "c"))
	require.Equal(t, []string{"c"}, putNames(t, &p, now.Add(placesTime+1), "c"), "most of them were free for a minute")
	require.Equal(t, []string{"c", "a", "b"}, putNames(t, &p, now.Add(placesTime+1), "a", "b", "c"))
	require.Equal(t, []string{"a", "b", "c"}, putNames(t, &p, now.Add(3*placesTime), "a", "b", "c"), "it was not listed for a minute")
	require.Empty(t, putNames(t, &p, now.Add(3*placesTime)))
}

// TestPlacesAreBounded: both the number of directories and the number of names are.
func TestPlacesAreBounded(t *testing.T) {
	var p places
	now := time.Unix(1e9, 0)
	few := []fs.FileInfo{&atPlace{name: "a"}, &atPlace{name: "b"}}
	for i := range keptListings + 5 {
		p.put(strconv.Itoa(i), few, nil, now)
		p.put(strconv.Itoa(i), few, nil, now)
	}
	require.Equal(t, keptListings, p.dirs.Len())
	require.Equal(t, keptListings*len(few), p.names)
	many := make([]fs.FileInfo, keptEntries+1)
	for i := range many {
		many[i] = &atPlace{name: strconv.Itoa(i)}
	}
	p.put("many", many, nil, now)
	require.Equal(t, 1, p.dirs.Len())
	require.Equal(t, len(many), p.names)
	p.put("few", few, nil, now)
	require.Equal(t, 1, p.dirs.Len())
	require.Equal(t, len(few), p.names)
}
