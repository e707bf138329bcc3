package main

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	nfsc "github.com/willscott/go-nfs-client/nfs"
	"github.com/willscott/go-nfs-client/nfs/rpc"
	"github.com/willscott/go-nfs-client/nfs/xdr"
)

// TestListings: their verifier finds them as long as they are kept.
func TestListings(t *testing.T) {
	dir := t.TempDir()
	write(t, nil, dir, "one")
	h := opened(t, dir)
	list := func() []os.FileInfo {
		l, err := h.fs.ReadDir("")
		require.NoError(t, err)
		return l
	}
	v := h.VerifierFor("", list())
	require.Equal(t, v, opened(t, dir).VerifierFor("", list()), "the same at another server")
	require.Len(t, h.DataForVerifier("", v), 1)
	again := list()
	require.Equal(t, v, h.VerifierFor("", again))
	require.Nil(t, h.DataForVerifier("x", v))
	require.Nil(t, h.DataForVerifier("", v+1))
	write(t, nil, dir, "two")
	require.NotEqual(t, v, h.VerifierFor("", list()))
	require.Len(t, h.DataForVerifier("", v), 1, "a client goes on with the older one")
	for i := range keptListings {
		h.VerifierFor(strconv.Itoa(i), nil)
	}
	require.Nil(t, h.DataForVerifier("", v))
}

// TestLargeListings: their memory is bounded.
func TestLargeListings(t *testing.T) {
	dir := t.TempDir()
	write(t, nil, dir, "one")
	h := opened(t, dir)
	list, err := h.fs.ReadDir("")
	require.NoError(t, err)
	small := h.VerifierFor("", list)
	large := slices.Repeat(list, keptEntries)
	first := h.VerifierFor("", large)
	require.Nil(t, h.DataForVerifier("", small))
	require.Len(t, h.DataForVerifier("", first), keptEntries)
	small = h.VerifierFor("", list)
	require.Nil(t, h.DataForVerifier("", first))
	require.Len(t, h.DataForVerifier("", small), 1)
	second := h.VerifierFor("", append(large, list...))
	require.Len(t, h.DataForVerifier("", second), keptEntries+1)
	require.Nil(t, h.DataForVerifier("", small))
}

// piece reads a part of a directory after an entry.
func piece(t *testing.T, v *nfsc.Target, dir []byte, behind, verifier uint64) (entries []nfsc.EntryPlus, verf uint64, eof bool) {
	t.Helper()
	res, err := v.Call(&struct {
		rpc.Header
		FH                 []byte
		Cookie, CookieVerf uint64
		DirCount, MaxCount uint32
	}{
		Header: rpc.Header{Rpcvers: 2, Prog: nfsc.Nfs3Prog, Vers: nfsc.Nfs3Vers, Proc: nfsc.NFSProc3ReadDirPlus, Cred: rpc.AuthNull, Verf: rpc.AuthNull},
		FH:     dir, Cookie: behind, CookieVerf: verifier, DirCount: 4096, MaxCount: 4096,
	})
	require.NoError(t, err)
	var head struct {
		Status     uint32
		Dir        nfsc.PostOpAttr
		CookieVerf uint64
	}
	require.NoError(t, xdr.Read(res, &head))
	require.Zero(t, head.Status)
	for {
		var item struct {
			IsSet bool           `xdr:"union"`
			Entry nfsc.EntryPlus `xdr:"unioncase=1"`
		}
		require.NoError(t, xdr.Read(res, &item))
		if !item.IsSet {
			break
		}
		entries = append(entries, item.Entry)
	}
	require.NoError(t, xdr.Read(res, &eof))
	return entries, head.CookieVerf, eof
}

// TestFilesThatChangeWhileTheyAreListed: an entry's attributes belong to the file whose handle comes with it. With
// another file number, Linux takes the handle for stale, and an older size would look like the present one.
func TestFilesThatChangeWhileTheyAreListed(t *testing.T) {
	dir := t.TempDir()
	names := make([]string, 40)
	for i := range names {
		names[i] = "file" + strconv.Itoa(100+i)
		write(t, octets(10), dir, names[i])
	}
	s := serves(t, dir, false)
	v := mounts(t, s.streams[1].Addr().String())
	_, root, err := v.Lookup(".")
	require.NoError(t, err)
	entries, verifier, eof := piece(t, v, root, 0, 0)
	require.False(t, eof)

	written, replaced, removed := names[37], names[38], names[39]
	write(t, octets(1000), dir, written)
	write(t, octets(2000), dir, "new")
	require.NoError(t, os.Rename(filepath.Join(dir, "new"), filepath.Join(dir, replaced)))
	require.NoError(t, os.Remove(filepath.Join(dir, removed)))
	for !eof {
		var more []nfsc.EntryPlus
		more, _, eof = piece(t, v, root, entries[len(entries)-1].Cookie, verifier)
		require.NotEmpty(t, more)
		entries = append(entries, more...)
	}
	require.Len(t, entries, 2+len(names), "the directory, the one above it, and each file once")
	for name, size := range map[string]uint64{names[36]: 10, written: 1000, replaced: 2000} {
		i := slices.IndexFunc(entries, func(e nfsc.EntryPlus) bool { return e.FileName == name })
		now, err := v.GetAttr(entries[i].Handle.FH)
		require.NoError(t, err)
		require.Equal(t, []uint64{now.Fileid, size}, []uint64{entries[i].Attr.Attr.Fileid, entries[i].Attr.Attr.Filesize}, name)
		require.Equal(t, now.Fileid, entries[i].FileId)
	}
}
