package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestDispatch(t *testing.T) {
	for _, c := range []struct {
		args   []string
		status int
		out    string
		errs   string
	}{
		{nil, 2, "", "usage: iwarp"},
		{[]string{"help"}, 0, "ping", ""},
		{[]string{"pong"}, 2, "", `unknown command "pong"`},
		{[]string{"ping", "-h"}, 0, "", "port of TCP"},
		{[]string{"perf", "-h"}, 0, "", "iwarp perf streams"},
		{[]string{"ping"}, 2, "", "one of -s and -c"},
		{[]string{"ping", "-c"}, 2, "", "-c needs -a"},
		{[]string{"ping", "-c", "-a", "::1", "-P"}, 2, "", "-P is for servers"},
		{[]string{"ping", "-s", "-S", "65536"}, 2, "", "-S must be from 23 to 65535"},
		{[]string{"ping", "-s", "-p", "x"}, 2, "", "invalid value"},
		{[]string{"ping", "-s", "now"}, 2, "", "unexpected arguments"},
		{[]string{"ping", "-c", "-a", "127.0.0.1", "-p", "1", "-C", "1"}, 1, "", "refused"},
	} {
		var out, errs bytes.Buffer
		require.Equal(t, c.status, dispatch(t.Context(), c.args, &out, &errs), "exit status of %q", c.args)
		require.Contains(t, out.String(), c.out, "output of %q", c.args)
		require.Contains(t, errs.String(), c.errs, "complaint about %q", c.args)
	}
}
