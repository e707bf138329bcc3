package peer

import (
	"bufio"
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestOrdersOfOtherProcesses are not carried out: any process of the host can connect to the control port, even before the parent process.
func TestOrdersOfOtherProcesses(t *testing.T) {
	stdin, toStdin := io.Pipe()
	fromStdout, stdout := io.Pipe()
	orders := make(chan string, 10)
	ended := make(chan error, 1)
	go func() {
		ended <- ServeControl(t.Context(), stdin, stdout, func(_ context.Context, order *string) (string, error) {
			orders <- *order
			return "done", nil
		})
	}()
	k := &Child{secret: "secret"}
	_, err := io.WriteString(toStdin, k.secret+"\n")
	require.NoError(t, err)
	line, err := bufio.NewReader(fromStdout).ReadString('\n')
	require.NoError(t, err)
	k.Addr = strings.TrimSpace(strings.TrimPrefix(line, listening))
	for _, said := range []string{"\"an order\"\n", "\n", "secreT\n\"an order\"\n"} {
		c, err := Dial(k.Addr, "")
		require.NoError(t, err)
		_, err = io.WriteString(c, said)
		require.NoError(t, err)
		_ = c.CloseWrite() // it may have been reset
		require.NoError(t, c.SetReadDeadline(time.Now().Add(Timeout)))
		n, _ := c.Read(make([]byte, 1)) // the end, or a reset
		require.Zero(t, n, said)
		require.NoError(t, c.Close())
	}
	r, err := DialControl(k)
	require.NoError(t, err)
	var result string
	require.NoError(t, r.Do("the parent's", &result))
	require.Equal(t, "done", result)
	require.NoError(t, r.Close())
	require.NoError(t, <-ended)
	require.Equal(t, "the parent's", <-orders)
	require.Empty(t, orders)
	require.NoError(t, toStdin.Close())
}

// TestParentThatLeavesAtOnce: nothing is served.
func TestParentThatLeavesAtOnce(t *testing.T) {
	require.ErrorIs(t, ServeControl[string, string](t.Context(), strings.NewReader(""), io.Discard, nil), io.EOF)
}
