package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/examples/nvme/backend"
	"github.com/goiwarp/iwarp/examples/nvme/host"
	"github.com/goiwarp/iwarp/examples/nvme/target"
)

const testSubsystem = "nqn.2026-11.org.example:disk"

// TestResizeAfterAFailedSync: a file whose sync fails, or has failed, is not opened again as if it had not.
func TestResizeAfterAFailedSync(t *testing.T) {
	ctx := context.Background()
	for name, before := range map[string]bool{"before": true, "meanwhile": false} {
		t.Run(name, func(t *testing.T) {
			fake, err := backend.NewFake(backend.FakeConfig{Size: 1 << 20})
			require.NoError(t, err)
			fake.Inject(backend.Fault{Call: backend.CallSync, Err: syscall.EIO})
			path := filepath.Join(t.TempDir(), "disk.img")
			require.NoError(t, os.WriteFile(path, make([]byte, 1<<20), 0o600))
			spec, err := backend.ParseSpec("file:" + path)
			require.NoError(t, err)
			m := &medium{spec: spec, resizable: true, size: fake.Size(), back: fake}
			v := m.view()
			require.NoError(t, v.WriteAt(ctx, random(4096), 0, false))
			if before {
				require.ErrorIs(t, v.Flush(ctx), backend.ErrSync)
			}
			require.Error(t, m.resize(2<<20))
			require.ErrorIs(t, v.Flush(ctx), backend.ErrFailed)
			require.ErrorIs(t, v.WriteAt(ctx, random(4096), 0, false), backend.ErrFailed)
			require.EqualValues(t, 1<<20, m.view().Size())
			require.NoError(t, m.close())
		})
	}
}

// TestResizeOfAReadOnlyFile: it does not become larger.
func TestResizeOfAReadOnlyFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "disk.img")
	require.NoError(t, os.WriteFile(path, make([]byte, 1<<20), 0o600))
	m, err := openMedium("file:"+path+",ro", true)
	require.NoError(t, err)
	require.Error(t, m.resize(2<<20))
	require.EqualValues(t, 1<<20, m.view().Size())
	require.NoError(t, m.resize(1<<19))
	require.EqualValues(t, 1<<19, m.view().Size())
	require.NoError(t, m.resize(1<<20))
	require.NoError(t, m.close())
}

// TestResizeOfAFileThatWasMoved: hosts keep what they have written, whatever the path leads to now.
func TestResizeOfAFileThatWasMoved(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	path, moved := filepath.Join(dir, "disk.img"), filepath.Join(dir, "moved")
	m, err := openMedium("file:"+path+",size=1MiB", true)
	require.NoError(t, err)
	v, want, got := m.view(), random(4096), make([]byte, 4096)
	require.NoError(t, v.WriteAt(ctx, want, 0, true))
	if err := os.Rename(path, moved); err != nil {
		t.Skip("a file that is open cannot be moved here: ", err)
	}
	require.ErrorIs(t, m.resize(2<<20), os.ErrNotExist)
	require.NoFileExists(t, path)
	require.NoError(t, os.WriteFile(path, make([]byte, 1<<20), 0o600))
	require.EqualError(t, m.resize(2<<20), path+" is not the file that is open")
	require.NoError(t, v.ReadAt(ctx, got, 0))
	require.Equal(t, want, got)
	require.EqualValues(t, 1<<20, m.view().Size())
	require.NoError(t, os.Rename(moved, path))
	require.NoError(t, m.resize(2<<20))
	require.EqualValues(t, 2<<20, m.view().Size())
	require.NoError(t, v.ReadAt(ctx, got, 0))
	require.Equal(t, want, got)
	require.NoError(t, m.close())
}

// TestNothingWaitsForAResize: only commands on the resized namespace do, and they share their queue with others.
func TestNothingWaitsForAResize(t *testing.T) {
	m, err := openMedium("mem:1MiB", true)
	require.NoError(t, err)
	other, err := openMedium("mem:1MiB", false)
	require.NoError(t, err)
	tg, err := target.New(nil)
	require.NoError(t, err)
	require.NoError(t, tg.AddSubsystem(target.Subsystem{NQN: testSubsystem}))
	for i, b := range []backend.Backend{m.view(), other.view()} {
		require.NoError(t, tg.AddNamespace(testSubsystem, target.Namespace{NSID: uint32(i + 1), Backend: b}))
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	l, err := tg.Listen(ctx, "pipe", "")
	require.NoError(t, err)
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = tg.Serve(ctx, l) // until the listener is closed
	}()
	c, err := host.Connect(ctx, l.Addr().String(), testSubsystem, &host.Options{Network: "pipe"})
	require.NoError(t, err)
	list, err := c.Namespaces(ctx)
	require.NoError(t, err)

	m.mu.Lock() // as resize does
	done := make(chan error, 1)
	waits := &host.Transfer{Write: true, P: random(4096), Done: func(t *host.Transfer) { done <- t.Err }}
	_, err = list[0].Start(waits)
	if err == nil {
		_, err = list[1].WriteAtContext(ctx, random(4096), 0)
	}
	m.mu.Unlock()

	require.NoError(t, err)
	require.NoError(t, <-done)
	require.NoError(t, c.Close())
	require.NoError(t, tg.Close())
	<-served
	require.NoError(t, errors.Join(l.Close(), m.close(), other.close()))
}

// TestRemoveIsDurable: a Write that is carried out while its namespace is removed is durable, if the host is told that
// it succeeded.
func TestRemoveIsDurable(t *testing.T) {
	fake, err := backend.NewFake(backend.FakeConfig{Size: 1 << 20})
	require.NoError(t, err)
	syncing := make(chan struct{})
	for range 2 {
		fake.Inject(backend.Fault{Call: backend.CallSync, Wait: syncing, Times: 1})
	}
	m := &medium{resizable: true, size: fake.Size(), back: fake}
	tg, err := target.New(nil)
	require.NoError(t, err)
	defer tg.Close()
	require.NoError(t, tg.AddSubsystem(target.Subsystem{NQN: testSubsystem}))
	v := m.view()
	require.NoError(t, tg.AddNamespace(testSubsystem, target.Namespace{NSID: 1, Backend: v}))
	d := &disks{nqn: testSubsystem, target: tg, resizable: true, spaces: map[uint32]*medium{1: m}}
	require.NoError(t, v.WriteAt(t.Context(), random(4096), 0, false))

	removed, written := make(chan error, 1), make(chan error, 1)
	go func() { removed <- d.remove(1) }()
	syncing <- struct{}{} // it has begun
	p := random(4096)
	go func() { written <- v.WriteAt(context.Background(), p, 4096, false) }()
	told := false
	select {
	case err = <-written:
		told = true
	case <-time.After(100 * time.Millisecond): // it waits
	}
	close(syncing)
	require.NoError(t, <-removed)
	if !told {
		err = <-written
	}
	for seed := range uint64(10) {
		after, crashed := fake.Crash(seed, false)
		require.NoError(t, crashed)
		got := make([]byte, len(p))
		require.NoError(t, after.ReadAt(t.Context(), got, 4096))
		require.NoError(t, after.Close())
		if err == nil {
			require.Equal(t, p, got, "the power fails")
		}
	}
}
