package transport

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRTRString(t *testing.T) {
	require.Equal(t, "none", RTR(0).String())
	require.Equal(t, "Send|Write|Read", (RTRSend | RTRWrite | RTRRead).String())
}
