package main

import (
	"bytes"
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/examples/nvme/host"
	"github.com/goiwarp/iwarp/examples/nvme/target"
	"github.com/goiwarp/iwarp/internal/units"
)

const (
	testHost = "nqn.2026-11.org.example:host"
	testID   = "01020304-0506-0708-090a-0b0c0d0e0f10"
)

// connected returns a host that is connected to a server.
func connected(t *testing.T, v *server) *host.Controller {
	t.Helper()
	i := &initiator{hostNQN: testHost, hostID: testID, queues: 2, depth: 4, timeout: patience, crc: true}
	c, err := i.connect(t.Context(), v.addr, &streams{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// event waits for an event of a kind.
func event(t *testing.T, c *host.Controller, kind host.EventKind) host.Event {
	t.Helper()
	for late := time.After(patience); ; {
		select {
		case e := <-c.Events():
			if e.Kind == kind {
				require.NoError(t, e.Err)
				return e
			}
		case <-late:
			require.Fail(t, "no event", "%v", kind)
		}
	}
}

// TestControl: a connected host sees each change, and still has its data afterwards.
func TestControl(t *testing.T) {
	image := filepath.Join(t.TempDir(), "a disk.img")
	for name, spec := range map[string]string{"memory": "mem:4MiB", "file": "file:" + image + ",size=4MiB"} {
		t.Run(name, func(t *testing.T) {
			ctx := context.Background()
			v := serve(t, "-control")
			c := connected(t, v)
			list, err := c.Namespaces(ctx)
			require.NoError(t, err)
			require.Empty(t, list)

			require.Equal(t, "ok 1", v.order("add "+spec))
			require.Equal(t, []uint32{1}, event(t, c, host.EventNamespaces).NSIDs)
			list, err = c.Namespaces(ctx)
			require.NoError(t, err)
			require.Len(t, list, 1)
			n, data, back := list[0], random(8192), make([]byte, 8192)
			_, err = n.WriteAt(data, 2<<20-4096)
			require.NoError(t, err)

			for _, now := range []int64{8 << 20, 3 << 20, 16 << 20} {
				octets := units.Size(now)
				require.Equal(t, "ok", v.order("resize 1 "+octets.String()))
				event(t, c, host.EventNamespaces)
				require.Equal(t, now, n.Size())
				_, err = n.WriteAt(data[:4096], now-4096)
				require.NoError(t, err)
				_, err = n.ReadAt(back, 2<<20-4096)
				require.NoError(t, err)
				require.Equal(t, data, back)
			}
			require.Equal(t, "ok", v.order("resize 1 1MiB"))
			event(t, c, host.EventNamespaces)
			_, err = n.ReadAt(back, 2<<20-4096)
			require.Error(t, err)

			require.Equal(t, "ok", v.order("remove 1"))
			event(t, c, host.EventNamespaces)
			require.Error(t, n.Err())
			require.Equal(t, "ok 2", v.order("add mem:1MiB"), "another namespace has another NSID")
		})
	}
}

// TestEnd: closing a queue ends its controller, and the host connects again.
func TestEnd(t *testing.T) {
	v := serve(t, "-backing", "mem:1MiB", "-control", "-allow", testHost)
	c := connected(t, v)
	require.Equal(t, "ok 1", v.order("end "+testHost+" 2"))
	event(t, c, host.EventReconnected)
	list, err := c.Namespaces(t.Context())
	require.NoError(t, err)
	_, err = list[0].WriteAt(random(4096), 0)
	require.NoError(t, err)

	var st target.Stats
	answer, found := strings.CutPrefix(v.order("stats"), "ok ")
	require.True(t, found)
	require.NoError(t, json.Unmarshal([]byte(answer), &st))
	require.GreaterOrEqual(t, st.Connections, uint64(6))
	require.Equal(t, 3, st.Queues)

	_, err = nvme(t, nil, "list", v.addr, "-nqn", v.nqn)
	require.ErrorContains(t, err, "0x184", "another host")
	_, err = nvme(t, nil, "list", v.addr)
	require.ErrorContains(t, err, "no NVM subsystem to this host")
}

func TestOrdersThatAreWrong(t *testing.T) {
	v := serve(t, "-backing", "mem:1MiB", "-control")
	for order, want := range map[string]string{
		"fly":               `error: no such command: "fly"`,
		"add":               "error: want: add SPEC",
		"add mem:x":         `error: backend: "mem:x"`,
		"remove":            "error: want: remove NSID",
		"remove 0":          `error: "0" is no NSID`,
		"remove 7":          "error: there is no namespace 7",
		"resize 1":          "error: want: resize NSID SIZE",
		"resize x 1MiB":     `error: "x" is no NSID`,
		"resize 1 much":     `error: "much" is not a size`,
		"resize 1 1000":     "error: 1000 octets are not a multiple of the block size 4096",
		"resize 2 1MiB":     "error: there is no namespace 2",
		"resize 1 32TiB":    "error: ",
		"end " + testHost:   "error: want: end HOSTNQN QID",
		"end a x":           `error: "x" is no QID`,
		"end a 1":           `error: host "a" has no queue 1`,
		"stats now":         "error: want: stats",
		"add file:/no/file": "error: ",
	} {
		require.Contains(t, v.order(order), want, order)
	}
	require.Contains(t, ok(t, "list", v.addr), "1MiB")
}

// TestOrderThatIsTooLong: the last answer says why no more orders are taken.
func TestOrderThatIsTooLong(t *testing.T) {
	var out bytes.Buffer
	(&disks{}).obey(strings.NewReader("add "+strings.Repeat("x", 1<<20)+"\nstats\n"), &out)
	require.Equal(t, "error: bufio.Scanner: token too long\n", out.String())
}
