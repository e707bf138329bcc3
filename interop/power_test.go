package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/interop/nbd"
	"github.com/goiwarp/iwarp/interop/powercut"
)

func TestFaultyDisk(t *testing.T) {
	d := &faultyDisk{Disk: nbd.NewDisk(make([]byte, 4096), 1)}
	sector := func(text string) []byte { return append([]byte(text), make([]byte, nbd.Sector-len(text))...) }
	require.NoError(t, d.WriteAt(sector("as others do"), 0, false))
	require.ErrorIs(t, d.WriteAt(sector(powercut.FailWrite), 0, false), syscall.EIO)
	got := make([]byte, nbd.Sector)
	require.NoError(t, d.ReadAt(got, 0))
	require.Equal(t, sector("as others do"), got, "it was not written")
	require.NoError(t, d.WriteAt(sector(powercut.FailFlush), 0, false))
	require.ErrorIs(t, d.Flush(), syscall.EIO)
	require.NoError(t, d.Flush(), "once")
	require.ErrorIs(t, d.WriteAt(sector(powercut.Seal), 0, false), syscall.EPERM)
	require.ErrorIs(t, d.WriteAt(sector("as others do"), 0, false), syscall.EPERM, "from then on")
}

func TestFaultResults(t *testing.T) {
	said := "[    1.0] a kernel\r\npowerguest: case full/holes passed\r\npowerguest: case device FAILED: want \"x\", have <nil>\r\npowerguest: the end: 1 cases failed\r\n"
	require.Equal(t, map[string]string{"full/holes": "passed", "device": `FAILED: want "x", have <nil>`}, faultResults(said))
}

func TestCasesThatDidNotEndHaveFailed(t *testing.T) {
	dir := t.TempDir()
	console, pmem := filepath.Join(dir, "console"), filepath.Join(dir, "pmem")
	p := &power{lab: &lab{}}
	var said bytes.Buffer
	for _, name := range powercut.Faults {
		said.WriteString(powercut.Sign + " case " + name + " passed\r\n")
	}
	require.NoError(t, os.WriteFile(console, said.Bytes(), 0o600))
	require.NoError(t, os.WriteFile(pmem, []byte("..."+powercut.InPMem), 0o600))
	require.NoError(t, p.reportFaults(console, pmem, nil))
	require.NoError(t, os.WriteFile(pmem, []byte("..."), 0o600))
	require.Error(t, p.reportFaults(console, pmem, nil), "what is not in the memory is not durable")
	require.NoError(t, os.WriteFile(console, said.Bytes()[:said.Len()/2], 0o600))
	require.ErrorIs(t, p.reportFaults(console, pmem, context.DeadlineExceeded), context.DeadlineExceeded)
}

func TestLastWord(t *testing.T) {
	console := filepath.Join(t.TempDir(), "console")
	require.Empty(t, lastWord(console), "there is no console")
	require.NoError(t, os.WriteFile(console, []byte("Linux\r\npowerguest: the end: mount: bad message\r\n[ 2.0] Restarting\r\n"), 0o600))
	require.Equal(t, "mount: bad message", lastWord(console))
}

func TestUnpackKernel(t *testing.T) {
	if _, err := exec.LookPath("xz"); err != nil {
		t.Skip("xz is not installed")
	}
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "xz", "-c")
	cmd.Stdin = bytes.NewReader([]byte("the kernel proper"))
	payload, err := cmd.Output()
	require.NoError(t, err)
	image := make([]byte, 3*512) // two sectors of set-up after the first
	image[0x1f1] = 2
	copy(image[0x202:], "HdrS")
	binary.LittleEndian.PutUint32(image[0x248:], 100)
	binary.LittleEndian.PutUint32(image[0x24c:], uint32(len(payload)+4))
	image = append(append(append(image, make([]byte, 100)...), payload...), 17, 0, 0, 0)
	from, to := filepath.Join(dir, "vmlinuz"), filepath.Join(dir, "vmlinux")
	require.NoError(t, os.WriteFile(from, image, 0o600))
	require.NoError(t, unpackKernel(t.Context(), from, to))
	got, err := os.ReadFile(to)
	require.NoError(t, err)
	require.Equal(t, "the kernel proper", string(got))
	require.NoError(t, os.WriteFile(from, image[:len(image)-10], 0o600))
	require.ErrorContains(t, unpackKernel(t.Context(), from, to), "is cut")
	require.NoError(t, os.WriteFile(from, make([]byte, 4096), 0o600))
	require.ErrorContains(t, unpackKernel(t.Context(), from, to), "is no kernel")
}

func TestCheckPower(t *testing.T) {
	c := config{sabotage: powercut.Honest, cuts: 1}
	require.NoError(t, c.checkPower())
	require.NotZero(t, c.seed, "one is drawn, and printed")
	c.sabotage = "arson"
	require.ErrorContains(t, c.checkPower(), "nosync")

	c = config{sabotage: powercut.NoSync, faults: true}
	require.ErrorContains(t, c.checkPower(), "-faults", "which plants nothing")
}

func TestCheckCreations(t *testing.T) {
	c := config{sabotage: powercut.NoNameSync}
	require.Error(t, c.checkPower(), "that is no sabotage of -power")
	c.creations = 1
	require.NoError(t, c.checkPower())
	c.sabotage = powercut.NoSync
	require.ErrorContains(t, c.checkPower(), "nodirsync")
	c.sabotage, c.cuts = powercut.Honest, 1
	require.ErrorContains(t, c.checkPower(), "two runs")
}

func TestFilesSaid(t *testing.T) {
	said := "[ 1.0] a kernel\r\npowerguest: created file-0 4096\r\npowerguest: created file-0 8192\r\npowerguest: there file-1 3\r\npowerguest: created file-2 409"
	require.Equal(t, map[string]int64{"file-0": 8192}, filesSaid(said, powercut.Created), "the last size, and no line that has not ended")
	require.Equal(t, map[string]int64{"file-1": 3}, filesSaid(said, powercut.There))
}

// TestCutsAreShared: each of the cuts is made by one machine.
func TestCutsAreShared(t *testing.T) {
	p := &power{left: 3}
	taken := 0
	for p.take() {
		taken++
	}
	require.Equal(t, 3, taken)
}
