package setup

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestListenConfigIsCompleted(t *testing.T) {
	m := newManager(t)
	for _, c := range []struct {
		given *ListenConfig
		want  ListenConfig
	}{
		{nil, ListenConfig{SetupTimeout: 5 * time.Second, ProgressTimeout: 2 * time.Second, MaxHalfOpen: maxHalfOpen}},
		{&ListenConfig{SetupTimeout: time.Second}, ListenConfig{SetupTimeout: time.Second, ProgressTimeout: time.Second, MaxHalfOpen: maxHalfOpen}},
		{&ListenConfig{ProgressTimeout: time.Minute, MaxHalfOpen: 1}, ListenConfig{SetupTimeout: 5 * time.Second, ProgressTimeout: time.Minute, MaxHalfOpen: 1}},
	} {
		got, err := m.Complete(c.given)
		require.NoError(t, err)
		require.Equal(t, c.want, got)
	}
	for _, c := range []ListenConfig{{SetupTimeout: -1}, {ProgressTimeout: -1}, {MaxHalfOpen: -1}} {
		_, err := m.Complete(&c)
		require.ErrorContains(t, err, "none may be negative")
	}
	_, err := m.Complete(&ListenConfig{MaxHalfOpen: maxHalfOpen + 1})
	require.ErrorIs(t, err, errLimit)
}
