package kv

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func testPutGetDelete(t *testing.T, network string) {
	w := newWorld(t, network)
	w.start()
	c := w.client("alpha")
	w.lacks(c, "a")
	w.put(c, "a", "1")
	w.holds(c, "a", "1")
	w.put(c, "a", "")
	w.holds(c, "a", "")
	long := strings.Repeat("v", MaxValue)
	w.put(c, strings.Repeat("k", MaxKey), long)
	w.holds(c, strings.Repeat("k", MaxKey), long)
	require.NoError(t, c.Delete(w.context(), []byte("a")))
	w.lacks(c, "a")
	require.NoError(t, c.Delete(w.context(), []byte("a")), "there is none any more")
	_, err := c.Get(w.context(), []byte("a"))
	require.ErrorIs(t, err, ErrNotFound)
	require.ErrorIs(t, c.Put(w.context(), nil, nil), ErrKey)
	require.ErrorIs(t, c.Put(w.context(), make([]byte, MaxKey+1), nil), ErrKey)
	require.ErrorIs(t, c.Put(w.context(), []byte("a"), make([]byte, MaxValue+1)), ErrValue)
	_, err = c.Get(w.context(), nil)
	require.ErrorIs(t, err, ErrKey)
	require.Empty(t, c.changes.conn.waiting, "each request had its answer")
	require.NoError(t, errors.Join(c.Close(), w.primary.Close(), w.backup.Close()))
}

func TestPutGetDelete(t *testing.T) {
	bubble(t, func(t *testing.T) { testPutGetDelete(t, "pipe") })
}

func TestPutGetDeleteOverTCP(t *testing.T) { testPutGetDelete(t, "tcp") }
